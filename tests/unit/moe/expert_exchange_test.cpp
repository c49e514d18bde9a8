#include "sim/moe/expert_exchange.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace orrery::expert_exchange_test {
namespace {

const Place test_place{"test", ""};

Experts router(std::int64_t count, std::int64_t per_token) {
  Experts experts;
  experts.count = count;
  experts.per_token = per_token;
  return experts;
}

// Nodes of 4 GPUs with ports of 10 GB/s and NICs of 1 GB/s, without any latency of NCCL's.
ExchangeCost on_ideal_links(ExpertDispatcher dispatcher, GroupShape group, double tokens) {
  System system = read_system("four-by-four", test_place);
  system.network_latency = Seconds{};
  system.scale_up_latency = Seconds{};
  const Experts experts = router(16, 2);
  const ExchangeShape shape{group, 500, experts.count, experts.per_token};
  return ExpertExchange{CollectiveTime{system}}(
      dispatcher, shape, uniform_exchange(experts, group.ranks, group.per_domain, tokens));
}

TEST(ExpertExchange, NcclSendsACopyForEachExpertAndKeepsThoseOfItsOwn) {
  // 1000 tokens x 2 experts x 1000 bytes = 2 MB, of which 3/8 go to the other 3 of the node and
  // 4/8 to the other node; the last 1/8 stays.
  const ExchangeCost cost = on_ideal_links(ExpertDispatcher::all_to_all, {8, 2, 4}, 1000);
  EXPECT_DOUBLE_EQ(cost.dispatch.scale_up_bytes.si(), 2e6 * 3 / 8);
  EXPECT_DOUBLE_EQ(cost.dispatch.network_bytes.si(), 2e6 * 4 / 8);
  EXPECT_NEAR(cost.dispatch.time().si(), 1e-3, 1e-12);  // The NIC's 1 MB at 1 GB/s.
  EXPECT_DOUBLE_EQ(cost.combine.time().si(), cost.dispatch.time().si());
}

TEST(ExpertExchange, TwoHopsTakeOneAfterTheOther) {
  // 3/4 of 2 MB inside the node at 10 GB/s, then 1/2 over the rail at 1 GB/s.
  const ExchangeCost cost = on_ideal_links(ExpertDispatcher::hierarchical, {8, 2, 4}, 1000);
  EXPECT_DOUBLE_EQ(cost.dispatch.scale_up_bytes.si(), 1.5e6);
  EXPECT_DOUBLE_EQ(cost.dispatch.network_bytes.si(), 1e6);
  EXPECT_NEAR(cost.dispatch.time().si(), 0.15e-3 + 1e-3, 1e-12);
}

TEST(ExpertExchange, GatheringSendsEveryTokenToEveryRank) {
  // 8 ranks' 1 MB each: 7 MB reach every rank, through rings whose every NIC carries 7 MB / 4.
  const ExchangeCost cost = on_ideal_links(ExpertDispatcher::all_gather, {8, 2, 4}, 1000);
  EXPECT_DOUBLE_EQ(cost.dispatch.scale_up_bytes.si(), 7e6 * 3 / 4);
  EXPECT_DOUBLE_EQ(cost.dispatch.network_bytes.si(), 7e6 / 4);
}

TEST(ExpertExchange, ARankAloneAndNoTokensTakeNoTime) {
  for (std::size_t i = 0; i < enum_words<ExpertDispatcher>.size(); ++i) {
    const auto dispatcher = static_cast<ExpertDispatcher>(i);
    EXPECT_EQ(on_ideal_links(dispatcher, {1, 1, 1}, 1000).dispatch.time().si(), 0.0);
    EXPECT_EQ(on_ideal_links(dispatcher, {8, 2, 4}, 0).combine.time().si(), 0.0);
  }
}

TEST(ExpertExchange, EightBitTokensCarryAScaleForEach128Channels) {
  ExchangeShape shape{{8, 1, 8}, 7168, 256, 8, Dtype::fp8};
  const CopyBytes nccl = copy_bytes(ExpertDispatcher::all_to_all, shape);
  EXPECT_DOUBLE_EQ(nccl.dispatch.si(), 7168 + 4 * 56);
  EXPECT_DOUBLE_EQ(nccl.combine.si(), 2 * 7168);
  // DeepEP: 8 experts' indices and weights, and 16 bytes of source.
  EXPECT_DOUBLE_EQ(copy_bytes(ExpertDispatcher::deepep, shape).dispatch.si(), 7392 + 112);
}

ExchangeCost deep_ep(const char* system, GroupShape group, double tokens, int multiprocessors,
                     ExpertDispatcher dispatcher = ExpertDispatcher::deepep) {
  const Experts experts = router(256, 8);
  ExchangeShape shape{group, 7168, experts.count, experts.per_token, Dtype::fp8};
  shape.multiprocessors = multiprocessors;
  return ExpertExchange{CollectiveTime{read_system(system, test_place)}}(
      dispatcher, shape, uniform_exchange(experts, group.ranks, group.per_domain, tokens));
}

TEST(ExpertExchange, DeepEpIsHeldBackByItsMultiprocessorsThenByTheNics) {
  // aiconfigurator, h100_sxm 0.5.6.post2, 131072 tokens on 4 nodes: 147 ms with 4 multiprocessors,
  // 55.1 ms with 24. The NICs' payload alone takes 131072 x 2.71 copies x 7.5 kB / 48.5 GB/s.
  const GroupShape four_nodes{32, 4, 8};
  EXPECT_NEAR(deep_ep("dgx-h100", four_nodes, 131072, 4).dispatch.time().si(), 0.147, 0.015);
  const CollectiveCost wide = deep_ep("dgx-h100", four_nodes, 131072, 24).dispatch;
  EXPECT_NEAR(wide.time().si(), 0.0551, 0.005);
  EXPECT_GE(wide.time().si(), wide.network_bytes.si() / 48.5e9);
  EXPECT_EQ(wide.channels, 24);
  EXPECT_EQ(wide.tag, Tag::interpolated);
}

TEST(ExpertExchange, OnceForEachNodeIsLessThanOnceForEachExpert) {
  const GroupShape group{64, 8, 8};
  const auto network = [&](ExpertDispatcher dispatcher) {
    return deep_ep("dgx-h100", group, 4096, 20, dispatcher).dispatch.network_bytes.si();
  };
  // 8 experts on 8 nodes: 8 x 7/8 copies leave; distinct nodes are 8 (1 - C(224,8)/C(256,8)).
  double missed = 1.0;
  for (int i = 0; i < 8; ++i) missed *= (224.0 - i) / (256.0 - i);
  EXPECT_NEAR(network(ExpertDispatcher::deepep) / network(ExpertDispatcher::deepep_low_latency),
              1.0 - missed, 1e-12);
}

TEST(ExpertExchange, AProxyIsNoMeasurement) {
  EXPECT_EQ(deep_ep("dgx-a100-80gb", {8, 1, 8}, 4096, 20).dispatch.tag, Tag::default_value);
  EXPECT_EQ(deep_ep("dgx-b200", {8, 1, 8}, 4096, 20).dispatch.tag, Tag::interpolated);
  EXPECT_EQ(deep_ep("dgx-b200", {16, 2, 8}, 4096, 20).dispatch.tag, Tag::default_value);
}

// Its authors' figures, kernel only, 4,096 tokens of 7,168 channels on 8 of 288 experts over 36
// GB200: 632 GB/s with 32 multiprocessors, tokens on 36 (1 - C(280,8)/C(288,8)) ranks.
TEST(ExpertExchange, HybridEpReachesWhatItsAuthorsPublished) {
  const Experts experts = router(288, 8);
  const GroupShape rack{36, 1, 36};
  ExchangeShape shape{rack, 7168, 288, 8, Dtype::bf16, 32};
  const CollectiveTime collectives{read_system("gb200-nvl72", test_place)};
  const ExpertExchange price{collectives};
  const ExchangeLoad load = uniform_exchange(experts, 36, 36, 4096);
  const CollectiveCost wide = price(ExpertDispatcher::hybridep, shape, load).dispatch;
  EXPECT_NEAR(wide.time().si(), load.received * 2 * 7168 / 632.31e9, 0.03 * wide.time().si());
  EXPECT_EQ(wide.channels, 32);
  EXPECT_EQ(wide.tag, Tag::interpolated);
  shape.multiprocessors = 0;
  const CollectiveCost usual = price(ExpertDispatcher::hybridep, shape, load).dispatch;
  EXPECT_EQ(usual.channels, 16);
  EXPECT_GT(usual.time(), wide.time());
  // A weight of 4 bytes for each expert of the domain goes with each copy.
  EXPECT_DOUBLE_EQ(copy_bytes(ExpertDispatcher::hybridep, shape).dispatch.si(),
                   2.0 * 7168 + 4.0 * 288);
  EXPECT_DOUBLE_EQ(copy_bytes(ExpertDispatcher::hybridep, shape).combine.si(), 2.0 * 7168);
}

// GB300, B200, B300 and a node of H100 by GB200; H200 between nodes by H100.
TEST(ExpertExchange, HybridEpsProxiesAreNoMeasurement) {
  const auto hybrid = [](const char* system, GroupShape group) {
    return deep_ep(system, group, 4096, 0, ExpertDispatcher::hybridep).dispatch;
  };
  for (const char* system : {"gb300-nvl72", "dgx-b200", "dgx-b300", "dgx-h100", "dgx-h200"})
    EXPECT_EQ(hybrid(system, {8, 1, 8}).tag, Tag::default_value) << system;
  EXPECT_EQ(hybrid("dgx-h100", {16, 2, 8}).tag, Tag::interpolated);
  EXPECT_EQ(hybrid("dgx-h200", {16, 2, 8}).tag, Tag::default_value);
  EXPECT_NEAR(hybrid("dgx-b200", {8, 1, 8}).time() / hybrid("gb200-nvl72", {8, 1, 8}).time(), 1.0,
              1e-9);
}

TEST(ExpertExchange, MoreTokensNeverTakeLess) {
  const Experts experts = router(256, 8);
  const CollectiveTime collectives{read_system("dgx-h100", test_place)};
  const ExpertExchange price{collectives};
  for (const ExpertDispatcher dispatcher :
       {ExpertDispatcher::deepep, ExpertDispatcher::deepep_low_latency, ExpertDispatcher::hybridep})
    for (const GroupShape group : {GroupShape{8, 1, 8}, {16, 2, 8}, {64, 8, 8}}) {
      const ExchangeShape shape{group, 7168, 256, 8, Dtype::fp8};
      Seconds before;
      for (double tokens = 1; tokens < 1e6; tokens *= 2) {
        const ExchangeLoad load = uniform_exchange(experts, group.ranks, group.per_domain, tokens);
        const Seconds now = price(dispatcher, shape, load).dispatch.time();
        EXPECT_GE(now, before) << name(dispatcher) << " " << tokens;
        before = now;
      }
    }
}

}  // namespace
}  // namespace orrery::expert_exchange_test
