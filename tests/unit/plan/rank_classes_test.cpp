#include "sim/plan/rank_classes.hpp"

#include <gtest/gtest.h>

#include "tests/support/placements.hpp"

namespace orrery::rank_classes_test {
namespace {

int ranks_of(const RankClasses& classes) {
  int sum = 0;
  for (const RankClass& rep : classes.reps()) sum += rep.ranks;
  return sum;
}

TEST(RankClasses, UnfoldedEveryRankIsItsOwnClass) {
  const RankClasses classes = RankClasses::unfolded(placement_of(2, 2, 2, nodes_of(4, 4)));
  ASSERT_EQ(classes.reps().size(), 8u);
  for (int r = 0; r < 8; ++r) {
    EXPECT_EQ(classes.reps()[static_cast<std::size_t>(r)].rank.value, r);
    EXPECT_EQ(classes.rep_of(Rank{r}), r);
    EXPECT_EQ(classes.sharers(r), 1);
  }
}

TEST(RankClasses, FoldedOneClassAStageWhereRegular) {
  const RankClasses classes = RankClasses::folded(placement_of(2, 2, 4, nodes_of(4, 4)));
  ASSERT_EQ(classes.reps().size(), 4u);
  for (const RankClass& rep : classes.reps()) EXPECT_EQ(rep.ranks, 4);
  EXPECT_EQ(classes.rep_of(Rank{6}), 1);
}

// All tp, dp, pp up to 16 ranks, nodes of four, 1, 2 or 4 NICs: where the recipe applies,
// refinement finds no more classes, and none of two stages. Elsewhere classes still cover every
// rank.
TEST(RankClasses, RefinementAgreesWithTheRecipe) {
  int regular = 0;
  int irregular = 0;
  for (int nics : {1, 2, 4})
    for (int tp = 1; tp <= 16; ++tp)
      for (int dp = 1; tp * dp <= 16; ++dp)
        for (int pp = 1; tp * dp * pp <= 16; ++pp) {
          SCOPED_TRACE(std::to_string(tp) + " " + std::to_string(dp) + " " + std::to_string(pp));
          const Placement placement = placement_of(tp, dp, pp, nodes_of(4, nics));
          const System system = nodes_of(4, nics);
          const Topology topology = Topology::build(system, placement.ranks());
          const RankClasses classes = refined(placement, topology);
          EXPECT_EQ(ranks_of(classes), placement.ranks());
          for (int r = 0; r < placement.ranks(); ++r) {
            const RankClass& rep =
                classes.reps()[static_cast<std::size_t>(classes.rep_of(Rank{r}))];
            EXPECT_EQ(rep.at.stage, placement.coordinates(Rank{r}).stage);
            EXPECT_LE(rep.rank.value, r);  // The first rank represents its class.
          }
          (placement.regular() ? regular : irregular) += 1;
          if (placement.regular()) {
            EXPECT_EQ(classes.reps().size(), static_cast<std::size_t>(pp));
            EXPECT_EQ(RankClasses::folded(placement).reps().size(), static_cast<std::size_t>(pp));
          }
        }
  EXPECT_GT(regular, 30);
  EXPECT_GT(irregular, 30);
}

// Ranks 0 1 | 2 in nodes of two: rank 2 is alone in its node. The ring between the nodes goes over
// the first members, 0 and 2, so that 0 and 1 differ as well.
TEST(RankClasses, RingsSeparateTheirMembers) {
  const System twos = nodes_of(2, 2);
  const auto reps = [&](int dp) {
    const Topology topology = Topology::build(twos, dp);
    return refined(placement_of(1, dp, 1, twos), topology).reps().size();
  };
  EXPECT_EQ(reps(3), 3u);
  EXPECT_EQ(reps(4), 1u);  // Full nodes: all alike.
  // However long the ring is: how far a rank is from the odd node counts for nothing.
  EXPECT_EQ(reps(1001), 3u);
}

// From 64 to 131,072 GPUs the same eight classes, which differ in size: the first rank of each
// stage (Megatron lays 8 tp x dp ranks a stage in a row) represents all of it.
TEST(RankClasses, TheRecipeDoesNotGrowWithTheCluster) {
  for (int dp = 1; dp <= 2048; dp *= 2) {
    const RankClasses classes = RankClasses::folded(placement_of(8, dp, 8, nodes_of(8, 8)));
    ASSERT_EQ(classes.reps().size(), 8u) << dp;
    for (int stage = 0; stage < 8; ++stage) {
      const RankClass& rep = classes.reps()[static_cast<std::size_t>(stage)];
      EXPECT_EQ(rep.rank.value, stage * 8 * dp);
      EXPECT_EQ(rep.at, (Coordinates{stage, 0, 0}));
      EXPECT_EQ(rep.ranks, 8 * dp);
      EXPECT_EQ(classes.rep_of(Rank{(stage + 1) * 8 * dp - 1}), stage);  // The stage's last rank.
    }
  }
}

TEST(RankClasses, SharersAreTheEquivalentRanksOnOneNic) {
  // Four GPUs a NIC, one stage: all four.
  EXPECT_EQ(RankClasses::folded(placement_of(1, 8, 1, nodes_of(4, 1))).sharers(0), 4);
  // Stages of two GPUs: two on the NIC play stage 0, two stage 1.
  const RankClasses two = RankClasses::folded(placement_of(2, 1, 4, nodes_of(4, 1)));
  for (int rep = 0; rep < 4; ++rep) EXPECT_EQ(two.sharers(rep), 2);
  // Only three of the NIC's four places are taken.
  const System system = nodes_of(4, 1);
  EXPECT_EQ(refined(placement_of(1, 3, 1, system), Topology::build(system, 3)).sharers(0), 3);
}

}  // namespace
}  // namespace orrery::rank_classes_test
