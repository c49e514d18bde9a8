#include "sim/moe/expert_placement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace orrery::expert_placement_test {
namespace {

TEST(Placement, ContiguousIsTheFrameworks) {
  const ExpertPlacement placement = contiguous_placement(8, 4);
  EXPECT_EQ(placement.slots_per_rank(), 2);
  EXPECT_EQ(placement.expert_of, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(placement.rank_of(5), 2);
}

TEST(Placement, TheHeaviestAreSpread) {
  // 9 8 | 2 1 placed contiguously: 17 against 3. Packed: 9 1 | 8 2.
  const std::vector<double> loads{9, 8, 2, 1};
  const ExpertPlacement placement = balanced_placement(loads, 2, 0);
  EXPECT_EQ(placement.expert_of, (std::vector<int>{0, 3, 1, 2}));
  EXPECT_EQ(rank_loads(placement, loads), (std::vector<double>{10, 10}));
  EXPECT_DOUBLE_EQ(imbalance(rank_loads(contiguous_placement(4, 2), loads)), 1.7);
  EXPECT_DOUBLE_EQ(imbalance(rank_loads(placement, loads)), 1.0);
}

TEST(Placement, ARedundantCopyHalvesTheHottest) {
  // 90 of 100 tokens at expert 0 of 4 ranks. 4 copies more: it gets all, 5 x 18, and 3 x 10/3.
  const std::vector<double> loads{90, 10.0 / 3, 10.0 / 3, 10.0 / 3};
  const ExpertPlacement placement = balanced_placement(loads, 4, 4);
  EXPECT_EQ(placement.copies(4), (std::vector<int>{5, 1, 1, 1}));
  EXPECT_NEAR(imbalance(rank_loads(placement, loads)), 36.0 / 25, 1e-12);
}

TEST(Placement, EveryExpertIsSomewhereAndEveryTokenToo) {
  for (const int ranks : {1, 2, 4, 8})
    for (const int experts : {8, 16, 24})
      for (const int redundant : {0, 8, 16})
        for (const int domains : {1, 2}) {
          if (ranks % domains != 0) continue;
          std::vector<double> loads;
          for (int e = 0; e < experts; ++e) loads.push_back((e * 37 + 11) % 101);
          const auto placement = balanced_placement(loads, ranks, redundant, 4, domains);
          ASSERT_EQ(placement.expert_of.size(), static_cast<std::size_t>(experts + redundant));
          const auto copies = placement.copies(experts);
          EXPECT_GE(*std::min_element(copies.begin(), copies.end()), 1);
          const auto on_ranks = rank_loads(placement, loads);
          EXPECT_NEAR(std::accumulate(on_ranks.begin(), on_ranks.end(), 0.0),
                      std::accumulate(loads.begin(), loads.end(), 0.0), 1e-9);
          // Each group's copies lie in one domain.
          if (domains > 1) {
            std::vector<std::set<int>> seen(4);
            for (std::size_t slot = 0; slot < placement.expert_of.size(); ++slot)
              seen[static_cast<std::size_t>(placement.expert_of[slot] / (experts / 4))].insert(
                  placement.rank_of(slot) / (ranks / domains));
            for (const auto& domains_of_group : seen) EXPECT_EQ(domains_of_group.size(), 1u);
          }
        }
}

TEST(Placement, NothingLoadedIsBalanced) {
  const std::vector<double> nothing{0, 0};
  EXPECT_EQ(imbalance(nothing), 1.0);
}

}  // namespace
}  // namespace orrery::expert_placement_test
