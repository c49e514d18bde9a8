#include <gtest/gtest.h>

#include "sim/layers/contention.hpp"

namespace orrery::overlap_loss_test {
namespace {

GroupCollective taking(Seconds time, double share) {
  GroupCollective collective;
  collective.cost.latency = time;
  collective.taken = share;
  return collective;
}

// s = 1/4: kernels of 3 ms concurrent with 4 ms end with it; shorter ones are slowed throughout,
// and of longer ones the rest runs at full speed.
TEST(OverlapLoss, KernelsHaveWhatTheCollectiveLeaves) {
  const GroupCollective collective = taking(Seconds{4e-3}, 0.25);
  const auto end = [&](double ms) {
    return 1e3 * (Seconds{1e-3 * ms} + overlap_loss({Seconds{1e-3 * ms}, {}, {}}, collective)).si();
  };
  EXPECT_NEAR(end(3.0), 4.0, 1e-12);
  EXPECT_NEAR(end(1.5), 2.0, 1e-12);
  EXPECT_NEAR(end(5.0), 6.0, 1e-12);
  EXPECT_NEAR(end(0.0), 0.0, 1e-12);
  EXPECT_EQ(overlap_loss({Seconds{5e-3}, {}, {}}, taking(Seconds{4e-3}, 0.0)), Seconds{});
}

// A collective that takes s = 1/2 of the multiprocessors and b = 1/5 of the memory. Of 3 ms, 2 of
// which stream: 1 / (1 - l) = 1/3 / (1/2) + 2/3 / (4/5) = 3/2, so that l = 1/3.
TEST(OverlapLoss, StreamsHaveTheMemoryThatIsLeft) {
  GroupCollective collective = taking(Seconds{9e-3}, 0.5);
  collective.taken_memory = 0.2;
  const auto lost = [&](double kernels, double streaming) {
    return 1e3 *
           overlap_loss({Seconds{1e-3 * kernels}, Seconds{1e-3 * streaming}, {}}, collective).si();
  };
  EXPECT_NEAR(lost(3.0, 2.0), 1.5, 1e-12);
  EXPECT_NEAR(lost(9.0, 6.0), 3.0, 1e-12);  // E l.
  EXPECT_NEAR(lost(4.0, 4.0), 1.0, 1e-12);  // K b / (1 - b).
  EXPECT_NEAR(lost(4.0, 0.0), 4.0, 1e-12);  // K s / (1 - s).
  TimeByPrice kernels;
  kernels.at(PriceKind::gemm, Tag::measured) = Seconds{1e-3};
  kernels.at(PriceKind::memory, Tag::default_value) = Seconds{2e-3};
  EXPECT_NEAR(
      1e3 * overlap_loss({Seconds{3e-3}, Seconds{2e-3}, {}}, kernels, collective).total().si(),
      lost(3.0, 2.0), 1e-12);
}

// 4 ms that lose as many at half the multiprocessors: 3 of them are the wait for the host.
TEST(OverlapLoss, WaitingForTheHostIsLostFirst) {
  const GroupCollective collective = taking(Seconds{9e-3}, 0.5);
  EXPECT_NEAR(1e3 * overlap_loss({Seconds{4e-3}, {}, Seconds{3e-3}}, collective).si(), 1.0, 1e-12);
  EXPECT_EQ(overlap_loss({Seconds{4e-3}, {}, Seconds{5e-3}}, collective), Seconds{});
  TimeByPrice kernels;
  kernels.at(PriceKind::gemm, Tag::measured) = Seconds{4e-3};
  kernels.at(PriceKind::host, Tag::default_value) = Seconds{3e-3};
  const TimeByPrice lost = overlap_loss({Seconds{4e-3}, {}, Seconds{3e-3}}, kernels, collective);
  EXPECT_NEAR(1e3 * lost.total().si(), 1.0, 1e-12);
  EXPECT_EQ(lost.at(PriceKind::host, Tag::default_value), Seconds{});

  Segment waits{Seconds{7e-3}, {}, {}};
  waits.idle = Seconds{3e-3};
  EXPECT_NEAR(1e3 * concurrent({waits}, collective).compute.si(), 8.0, 1e-12);
}

TEST(OverlapLoss, IsPricedAsWhatDecidesIt) {
  const GroupCollective collective = taking(Seconds{4e-3}, 0.25);
  TimeByPrice kernels;
  for (const double ms : {1.0, 2.9, 3.1, 8.0}) {
    kernels = {};
    kernels.at(PriceKind::gemm, Tag::measured) = Seconds{1e-3 * ms};
    const KernelTimes times{Seconds{1e-3 * ms}, {}, {}};
    const TimeByPrice lost = overlap_loss(times, kernels, collective);
    EXPECT_NEAR(lost.total().si(), overlap_loss(times, collective).si(), 1e-15);
    EXPECT_EQ(lost.kernels().total() > Seconds{}, ms < 3.0);
    EXPECT_EQ(lost.collectives().total() > Seconds{}, ms > 3.0);
  }
}

// Kernels shorter than the concurrent collective decide nothing, and are slowed all the same: 5 ms
// of them and 1 ms that decide lose 6, and the wait of 4 ms for the host takes the first of that.
TEST(OverlapLoss, PricesAddUpToItWhereKernelsDecideNothing) {
  const GroupCollective collective = taking(Seconds{20e-3}, 0.5);
  const KernelTimes times{Seconds{6e-3}, {}, Seconds{4e-3}};
  TimeByPrice prices;
  prices.at(PriceKind::host, Tag::default_value) = Seconds{4e-3};
  EXPECT_NEAR(1e3 * overlap_loss(times, prices, collective).total().si(), 2.0, 1e-12);
  prices.at(PriceKind::gemm, Tag::measured) = Seconds{1e-3};
  const TimeByPrice lost = overlap_loss(times, prices, collective);
  EXPECT_NEAR(1e3 * lost.at(PriceKind::gemm, Tag::measured).si(), 2.0, 1e-12);
  EXPECT_EQ(lost.collectives().total(), Seconds{});
}

// Kernels of a segment, whose parts and members all slow down alike.
TEST(OverlapLoss, StretchesEverySegment) {
  Segment part;
  part.compute = Seconds{2e-3};
  part.weight_gradients = Seconds{1e-3};
  part.members = {Seconds{2e-3}, Seconds{1e-3}};
  const GroupCollective collective = taking(Seconds{8e-3}, 0.5);
  const Segment both = concurrent({part, part}, collective);
  ASSERT_EQ(both.fused.size(), 2u);
  EXPECT_NEAR(kernels_of({both}).busy.si(), 8e-3, 1e-15);
  EXPECT_NEAR(both.fused[1].weight_gradients.si(), 2e-3, 1e-15);
  EXPECT_NEAR(both.fused[0].members[1].si(), 2e-3, 1e-15);
  EXPECT_NEAR(both.time().si(), 8e-3, 1e-15);
}

}  // namespace
}  // namespace orrery::overlap_loss_test
