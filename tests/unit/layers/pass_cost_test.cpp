#include "sim/layers/pass_cost.hpp"

#include <gtest/gtest.h>

#include "tests/support/scenarios.hpp"

namespace orrery::pass_cost_test {
namespace {

// test-gpu copies at 0.85 x 1 TB/s (no tables): 850 MB take 1 ms. Two ranks on two-gpus reduce
// 1 MB in 2 us + 1 ms. Without gaps between kernels and without a host's floor, unless a test says.
class Pricing : public ::testing::Test {
 protected:
  Pricing() { software_.kernel_overhead = software_.host_launch = Seconds{}; }

  PassCost price(const Ops& ops) const { return pricer_.price(ops); }

  static Op millisecond(std::string_view name) { return memory(name, 850e6); }
  static Op reduce(double hidden) {
    return collective("reduce", CollectiveKind::all_reduce, 1e6, hidden);
  }
  static constexpr double reduce_time = 1.002e-3;
  // 1 MB sent is 3 MB of memory traffic: it is read, written where it arrives, and what it is added
  // to is read. Concurrent memory-bound kernels lose the time that copies need for as much.
  static constexpr double reduce_traffic = 3e6 / 850e9;

  System system_ = read_system("two-gpus", test_place);
  Software software_ = read_software("megatron-core", test_place);
  KernelModel kernels_{system_.gpu, Dtype::bf16, nullptr};
  CollectiveTime collectives_{system_};
  Pricer pricer_{kernels_, collectives_, {{2, 1, 2}, {}, {}}, software_, system_.gpu};
};

TEST_F(Pricing, KernelsFollowEachOther) {
  const PassCost cost = price({millisecond("a"), millisecond("b")});
  EXPECT_EQ(cost.segments.size(), 1u);
  EXPECT_NEAR(cost.time().si(), 2e-3, 1e-12);
  EXPECT_NEAR(cost.compute.si(), 2e-3, 1e-12);
  EXPECT_EQ(cost.communication.si(), 0.0);
}

TEST_F(Pricing, AnExposedCollectiveIsWaitedFor) {
  const PassCost cost = price({millisecond("a"), reduce(0.0), millisecond("b")});
  EXPECT_NEAR(cost.time().si(), 2e-3 + reduce_time, 1e-12);
  EXPECT_NEAR(cost.communication.si(), reduce_time, 1e-12);
  EXPECT_EQ(cost.scale_up_bytes[0].si(), 1e6);  // 2 (n-1)/n S
}

// Hidden behind a kernel that is long enough it costs its traffic; behind a short one, the
// difference.
TEST_F(Pricing, AHiddenCollectiveOverlapsTheNextKernel) {
  EXPECT_NEAR(price({reduce(1.0), memory("two", 1700e6), millisecond("b")}).time().si(),
              3e-3 + reduce_traffic, 1e-12);
  EXPECT_NEAR(price({reduce(1.0), memory("tenth", 85e6), millisecond("b")}).time().si(),
              reduce_time + 1e-3, 1e-12);
}

// 60 % overlap the kernel of 1 ms, 40 % follow it.
TEST_F(Pricing, APartlyHiddenCollectiveLeavesARest) {
  const PassCost cost = price({reduce(0.6), millisecond("a"), millisecond("b")});
  EXPECT_NEAR(cost.time().si(), 1e-3 + 0.6 * reduce_traffic + 0.4 * reduce_time + 1e-3, 1e-12);
  EXPECT_NEAR(cost.communication.si(), reduce_time, 1e-12);
}

// A host that reads from the GPU leaves it idle, and launches no kernel of its own.
TEST_F(Pricing, AWaitForTheHostAddsUp) {
  const PassCost cost =
      price({millisecond("a"), wait_for_host("read", Seconds{3e-3}), millisecond("b")});
  EXPECT_EQ(cost.segments.size(), 1u);
  EXPECT_NEAR(cost.time().si(), 5e-3, 1e-12);
  EXPECT_NEAR(cost.segments[0].idle.si(), 3e-3, 1e-12);
  EXPECT_NEAR(cost.work.at(Work::host).si(), 3e-3, 1e-12);
  EXPECT_NEAR(cost.work.total().si(), 5e-3, 1e-12);
}

// Two kernels of 1 ms need two launches of 5 ms: the GPU waits for its host.
TEST_F(Pricing, TheHostSetsAFloor) {
  software_.host_launch = Seconds{5e-3};
  const PassCost cost = price({millisecond("a"), millisecond("b")});
  EXPECT_NEAR(cost.time().si(), 10e-3, 1e-12);
  EXPECT_NEAR(cost.compute.si(), 10e-3, 1e-12);
  EXPECT_NEAR(price({memory("long", 8500e6)}).time().si(), 10e-3, 1e-12);  // One launch, 10 ms.
}

TEST_F(Pricing, EveryKernelPaysItsGap) {
  software_.kernel_overhead = Seconds{1e-4};
  EXPECT_NEAR(price({millisecond("a"), millisecond("b")}).time().si(), 2.2e-3, 1e-12);
}

// 8 products of 1000^3: 1.6e10 flop at 30 % of 100 TFLOP/s take 0.533 ms, 48 MB of traffic less.
TEST_F(Pricing, BatchedProductsAreBoundByTheSlower) {
  Op op;
  op.kind = Op::Kind::batched_gemm;
  op.batch = 8;
  op.m = op.n = op.k = 1000;
  op.bytes = Bytes{48e6};
  EXPECT_NEAR(price({op}).time().si(), 1.6e10 / 30e12, 1e-12);
  op.bytes = Bytes{850e6};
  EXPECT_NEAR(price({op}).time().si(), 1e-3, 1e-12);
}

// Shares by tag add up to all that is charged, hidden or not.
TEST_F(Pricing, TagsAddUp) {
  software_.host_launch = Seconds{5e-3};
  const PassCost cost = price({millisecond("a"), reduce(1.0), millisecond("b"), reduce(0.0)});
  EXPECT_NEAR((cost.by_tag[0] + cost.by_tag[1] + cost.by_tag[2]).si(),
              (cost.compute + cost.communication).si(), 1e-12);
}

// 1 ms of a; then 0.9 ms of b concurrent with a collective of 1.002 ms, which decides; then one
// behind it; then the host, which needs 20 ms for two launches: 2 us + 1 ms of each collective
// count, b does not.
TEST_F(Pricing, WhatDecidesAddsUpToTheTime) {
  software_.host_launch = Seconds{10e-3};
  PassCost cost = price({millisecond("a"), reduce(1.0), memory("b", 765e6), reduce(0.0)});
  const auto decisive = [&](PriceKind kind) {
    Seconds sum;
    for (Tag tag : {Tag::measured, Tag::interpolated, Tag::default_value})
      sum += cost.decisive.at(kind, tag);
    return sum.si();
  };
  EXPECT_NEAR(decisive(PriceKind::memory), 1e-3, 1e-12);
  EXPECT_NEAR(decisive(PriceKind::nvlink_latency), 4e-6, 1e-12);
  EXPECT_NEAR(decisive(PriceKind::nvlink_bytes), 2e-3, 1e-12);
  EXPECT_NEAR(decisive(PriceKind::host), 20e-3 - 3.004e-3, 1e-12);
  EXPECT_NEAR(cost.decisive.total().si(), cost.time().si(), 1e-12);
  cost.append(price({reduce(0.5), millisecond("b")}));
  cost.append(GroupCollective{pricer_.collective(reduce(0.0)).cost, GroupKind::expert});
  EXPECT_NEAR(decisive(PriceKind::exchange), 1.002e-3, 1e-12);
  EXPECT_NEAR(cost.decisive.total().si(), cost.time().si(), 1e-12);
}

TEST_F(Pricing, AppendingAddsUp) {
  PassCost sum = price({millisecond("a"), reduce(0.0)});
  const PassCost more = price({reduce(0.5), millisecond("b")});
  const Seconds expected = sum.time() + more.time();
  sum.append(more);
  EXPECT_NEAR(sum.time().si(), expected.si(), 1e-15);
  EXPECT_EQ(sum.scale_up_bytes[0].si(), 2e6);
  EXPECT_NEAR(sum.communication.si(), 2 * reduce_time, 1e-12);
}

}  // namespace
}  // namespace orrery::pass_cost_test
