#include <gtest/gtest.h>

#include <numeric>

#include "sim/moe/expert_placement.hpp"
#include "tests/support/error_text.hpp"

namespace orrery::place_experts_test {
namespace {

// One layer, two micro-batches, one source rank, four experts.
RoutingTrace trace() {
  return parse_trace(
      "{\"layer\":0,\"micro_batch\":0,\"rank\":0,\"tokens\":[9,8,2,1]}\n"
      "{\"layer\":0,\"micro_batch\":1,\"rank\":0,\"tokens\":[9,6,4,1]}\n",
      "t");
}

TEST(PlaceExperts, TheGainIsThatOfEachMicroBatch) {
  // Contiguous on two ranks: 17 of 20, then 15 of 20. Totals 18 14 6 2 are packed {18 2} {14 6}:
  // 10 and 10, then 10 and 10.
  const PlacementGain gain = place_experts(trace(), {2, 0, 1, 1}, {});
  ASSERT_EQ(gain.layers.size(), 1u);
  EXPECT_EQ(gain.layers[0].placement.expert_of, (std::vector<int>{0, 3, 1, 2}));
  EXPECT_DOUBLE_EQ(gain.before(), (1.7 + 1.5) / 2);
  EXPECT_DOUBLE_EQ(gain.after(), 1.0);
  EXPECT_DOUBLE_EQ(gain.speedup(), 32.0 / 20);
}

TEST(PlaceExperts, NeverWorseOverAll) {
  const RoutingTrace example =
      read_trace(std::string{ORRERY_TEST_SOURCE} + "/workloads/routing/example.jsonl");
  for (const int ranks : {1, 2, 4, 8, 16})
    for (const int copies : {0, 1, 2}) {
      const PlacementGain gain = place_experts(example, {ranks, copies * ranks, 1, 1}, {});
      EXPECT_LE(gain.after(), gain.before() + 1e-12) << ranks << " " << copies;
      for (const auto& layer : gain.layers)
        EXPECT_EQ(layer.placement.expert_of.size(), static_cast<std::size_t>(16 + copies * ranks));
    }
  // Whole groups on nodes are a restriction: no better than free placement.
  EXPECT_GE(place_experts(example, {8, 8, 4, 2}, {}).after(),
            place_experts(example, {8, 8, 1, 1}, {}).after() - 1e-12);
}

TEST(PlaceExperts, WhatDoesNotDivideIsRefused) {
  const auto refusal = [](const PlacementRequest& request) {
    return error_text([&] { place_experts(trace(), request, {}); });
  };
  EXPECT_EQ(refusal({3, 0, 1, 1}), "--ep: 4 experts on 3 ranks; take numbers that divide");
  EXPECT_EQ(refusal({2, 3, 1, 1}),
            "--redundant: 3 redundant experts on 2 ranks; take numbers that divide");
  EXPECT_EQ(refusal({2, 0, 3, 1}), "--groups: 4 experts in 3 groups; take numbers that divide");
  EXPECT_EQ(refusal({2, 0, 1, 2}),
            "--nodes: 1 groups of experts on 2 nodes; take numbers that divide");
}

}  // namespace
}  // namespace orrery::place_experts_test
