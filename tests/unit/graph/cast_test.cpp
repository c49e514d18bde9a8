#include "sim/graph/cast.hpp"

#include <gtest/gtest.h>

#include "tests/support/placements.hpp"

namespace orrery {
namespace {

int ranks_of(const Cast& cast) {
  int sum = 0;
  for (const Role& role : cast.roles()) sum += role.ranks;
  return sum;
}

TEST(Cast, UnfoldedEveryRankPlaysItself) {
  const Cast cast = Cast::unfolded(placement_of(2, 2, 2, nodes_of(4, 4)));
  ASSERT_EQ(cast.roles().size(), 8u);
  for (int r = 0; r < 8; ++r) {
    EXPECT_EQ(cast.roles()[static_cast<std::size_t>(r)].rank.value, r);
    EXPECT_EQ(cast.role_of(Rank{r}), r);
    EXPECT_EQ(cast.sharers(r), 1);
  }
}

TEST(Cast, FoldedOneRoleAStageWhereRegular) {
  const Cast cast = Cast::folded(placement_of(2, 2, 4, nodes_of(4, 4)));
  ASSERT_EQ(cast.roles().size(), 4u);
  for (const Role& role : cast.roles()) EXPECT_EQ(role.ranks, 4);
  EXPECT_EQ(cast.role_of(Rank{6}), 1);
}

// All tp, dp, pp up to 16 ranks, nodes of four, 1, 2 or 4 NICs: where the recipe serves, refinement
// finds no more roles, and no role of two stages. Where it does not, roles still cover every rank.
TEST(Cast, RefinementAgreesWithTheRecipe) {
  int regular = 0;
  int irregular = 0;
  for (int nics : {1, 2, 4})
    for (int tp = 1; tp <= 16; ++tp)
      for (int dp = 1; tp * dp <= 16; ++dp)
        for (int pp = 1; tp * dp * pp <= 16; ++pp) {
          SCOPED_TRACE(std::to_string(tp) + " " + std::to_string(dp) + " " + std::to_string(pp));
          const Placement placement = placement_of(tp, dp, pp, nodes_of(4, nics));
          const Cast refined = Cast::refined(placement);
          EXPECT_EQ(ranks_of(refined), placement.ranks());
          for (int r = 0; r < placement.ranks(); ++r) {
            const Role& role = refined.roles()[static_cast<std::size_t>(refined.role_of(Rank{r}))];
            EXPECT_EQ(role.at.stage, placement.coordinates(Rank{r}).stage);
            EXPECT_LE(role.rank.value, r);  // A role is played by its first rank.
          }
          (placement.regular() ? regular : irregular) += 1;
          if (placement.regular()) {
            EXPECT_EQ(refined.roles().size(), static_cast<std::size_t>(pp));
            EXPECT_EQ(Cast::folded(placement).roles().size(), static_cast<std::size_t>(pp));
          }
        }
  EXPECT_GT(regular, 30);
  EXPECT_GT(irregular, 30);
}

// Ranks 0 1 | 2 in nodes of two: rank 2 is alone in its node. The ring between the nodes goes over
// the first members, 0 and 2, so that 0 and 1 differ as well.
TEST(Cast, RingsTellTheirMembersApart) {
  EXPECT_EQ(Cast::refined(placement_of(1, 3, 1, nodes_of(2, 2))).roles().size(), 3u);
  // Full nodes: all alike.
  EXPECT_EQ(Cast::refined(placement_of(1, 4, 1, nodes_of(2, 2))).roles().size(), 1u);
}

// 131,072 GPUs cost what 1,024 cost: the recipe looks at no rank.
TEST(Cast, TheRecipeDoesNotGrowWithTheCluster) {
  EXPECT_EQ(Cast::folded(placement_of(8, 2048, 8, nodes_of(8, 8))).roles().size(), 8u);
}

TEST(Cast, SharersAreTheTwinsOnOneNic) {
  // Four GPUs a NIC, one stage: all four.
  EXPECT_EQ(Cast::folded(placement_of(1, 8, 1, nodes_of(4, 1))).sharers(0), 4);
  // Stages of two GPUs: two on the NIC play stage 0, two stage 1.
  const Cast two = Cast::folded(placement_of(2, 1, 4, nodes_of(4, 1)));
  for (int role = 0; role < 4; ++role) EXPECT_EQ(two.sharers(role), 2);
  // Only three of the NIC's four places are taken.
  EXPECT_EQ(Cast::folded(placement_of(1, 3, 1, nodes_of(4, 1))).sharers(0), 3);
}

}  // namespace
}  // namespace orrery
