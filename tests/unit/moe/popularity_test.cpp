#include <gtest/gtest.h>

#include <numeric>

#include "sim/moe/routing_plan.hpp"

namespace orrery::popularity_test {
namespace {

Experts router(std::int64_t count, std::int64_t per_token) {
  Experts experts;
  experts.count = count;
  experts.per_token = per_token;
  return experts;
}

TEST(Popularity, SharesSumToTheExpertsOfATokenAndFall) {
  for (const Popularity popularity : {Popularity{PopularityKind::uniform, 0},
                                      {PopularityKind::zipf, 0.5},
                                      {PopularityKind::zipf, 3},
                                      {PopularityKind::hot, 0.9},
                                      {PopularityKind::power_law, 1},
                                      {PopularityKind::power_law, 1.8},
                                      {PopularityKind::spread, 0.52}})
    for (const std::int64_t count : {1, 2, 8, 64, 256})
      for (std::int64_t k = 1; k <= std::min<std::int64_t>(count, 8); ++k) {
        if (popularity.kind == PopularityKind::hot && k == count) continue;  // Refused by Router.
        const auto shares = visit_shares(popularity, router(count, k));
        EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), static_cast<double>(k),
                    1e-9);
        for (std::size_t i = 0; i < shares.size(); ++i) {
          EXPECT_GE(shares[i], 0.0);
          EXPECT_LE(shares[i], 1.0 + 1e-12);
          if (i > 0 && popularity.kind != PopularityKind::hot) {
            EXPECT_LE(shares[i], shares[i - 1] + 1e-12);
          }
        }
      }
}

TEST(Popularity, ZipfOfFourExperts) {
  // Weights 1, 1/2, 1/3, 1/4 of 25/12. Top 1 in proportion; of top 2 the first would be visited by
  // 24/25 of the tokens; of top 3 by all, and the others share two: 12/13, 8/13, 6/13.
  const auto one = visit_shares({PopularityKind::zipf, 1}, router(4, 1));
  EXPECT_NEAR(one[0], 12.0 / 25, 1e-11);
  EXPECT_NEAR(one[3], 3.0 / 25, 1e-11);
  EXPECT_NEAR(visit_shares({PopularityKind::zipf, 1}, router(4, 2))[0], 24.0 / 25, 1e-11);
  const auto three = visit_shares({PopularityKind::zipf, 1}, router(4, 3));
  EXPECT_EQ(three[0], 1.0);
  EXPECT_NEAR(three[1], 12.0 / 13, 1e-11);
  EXPECT_NEAR(three[3], 6.0 / 13, 1e-11);
}

TEST(Popularity, AHotExpertHasItsShare) {
  const auto shares = visit_shares({PopularityKind::hot, 0.9}, router(8, 2));
  EXPECT_EQ(shares[0], 0.9);
  EXPECT_NEAR(shares[5], 1.1 / 7, 1e-12);
}

TEST(Popularity, TheBusiestOfASpreadIsThatFarOverTheMean) {
  const auto shares = visit_shares({PopularityKind::spread, 0.52}, router(64, 6));
  EXPECT_NEAR(shares[0] / (6.0 / 64), 1.0 + 0.52 * (1.0 - 1.0 / 64), 1e-12);
}

}  // namespace
}  // namespace orrery::popularity_test
