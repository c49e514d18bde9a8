#include "sim/moe/token_copies.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <set>

namespace orrery::token_copies_test {
namespace {

Experts router(std::int64_t count, std::int64_t per_token, std::int64_t groups = 1,
               std::int64_t groups_per_token = 1) {
  Experts experts;
  experts.count = count;
  experts.per_token = per_token;
  experts.groups = groups;
  experts.groups_per_token = groups_per_token;
  return experts;
}

// The same by going through every choice of groups and of experts in them.
double counted(const Experts& experts, int parts) {
  const std::int64_t size = experts.count / experts.groups;
  double all = 0.0, reached = 0.0;
  for (std::uint32_t groups = 0; groups < 1u << experts.groups; ++groups) {
    if (std::popcount(groups) != experts.groups_per_token) continue;
    for (std::uint32_t chosen = 0; chosen < 1u << experts.count; ++chosen) {
      if (std::popcount(chosen) != experts.per_token) continue;
      bool allowed = true;
      std::set<std::int64_t> shares;
      for (std::int64_t e = 0; e < experts.count; ++e)
        if (chosen >> e & 1) {
          allowed = allowed && (groups >> (e / size) & 1);
          shares.insert(e / (experts.count / parts));
        }
      if (!allowed) continue;
      all += 1.0;
      reached += static_cast<double>(shares.size());
    }
  }
  return reached / all;
}

TEST(TokenCopies, DistinctSharesAreCountedRight) {
  for (const std::int64_t count : {1, 2, 4, 6, 8})
    for (std::int64_t groups = 1; groups <= count; ++groups)
      for (std::int64_t picked = 1; picked <= groups && count % groups == 0; ++picked)
        for (std::int64_t k = 1; k <= count / groups * picked && k <= 4; ++k)
          for (int parts = 1; parts <= count; ++parts) {
            if (count % parts != 0) continue;
            const Experts experts = router(count, k, groups, picked);
            EXPECT_NEAR(distinct_shares(experts, parts), counted(experts, parts), 1e-12)
                << count << " experts, " << groups << " groups, " << picked << " picked, top " << k
                << ", " << parts << " parts";
          }
}

// Token by token until all experts have been in turn, and never more than by free choice.
TEST(TokenCopies, ExpertsInTurnLieInFewShares) {
  for (const std::int64_t count : {1, 4, 6, 8, 12, 128, 384, 512})
    for (std::int64_t k = 1; k <= std::min<std::int64_t>(count, 22); ++k)
      for (int parts = 1; parts <= count; ++parts) {
        if (count % parts != 0) continue;
        std::int64_t reached = 0;
        for (std::int64_t token = 0; token < count; ++token) {
          std::set<std::int64_t> shares;
          for (std::int64_t i = 0; i < k; ++i)
            shares.insert((token * k + i) % count / (count / parts));
          reached += std::ssize(shares);
        }
        const double shares = distinct_shares(router(count, k), parts, EvenChoice::in_turn);
        EXPECT_NEAR(shares, static_cast<double>(reached) / static_cast<double>(count), 1e-12)
            << count << " experts, top " << k << ", " << parts << " parts";
        EXPECT_LE(shares, distinct_shares(router(count, k), parts) + 1e-12);
      }
  // Nemotron 3 Nano on eight GPUs, Super on eight nodes.
  EXPECT_DOUBLE_EQ(distinct_shares(router(128, 6), 8, EvenChoice::in_turn), 1.25);
  EXPECT_NEAR(distinct_shares(router(128, 6), 8), 4.47, 0.01);
  EXPECT_NEAR(distinct_shares(router(512, 22), 8, EvenChoice::in_turn), 1.3125, 1e-9);
  EXPECT_NEAR(distinct_shares(router(512, 22), 8), 7.60, 0.01);
}

TEST(TokenCopies, DeepSeekV3ReachesAtMostFourNodes) {
  // 8 groups on 8 nodes, 4 picked: 4 (1 - C(96,8)/C(128,8)) nodes; without limit 8 (1 - C(224,8)/
  // C(256,8)).
  double limited = 1.0, free = 1.0;
  for (int i = 0; i < 8; ++i) {
    limited *= (96.0 - i) / (128.0 - i);
    free *= (224.0 - i) / (256.0 - i);
  }
  EXPECT_NEAR(distinct_shares(router(256, 8, 8, 4), 8), 4 * (1 - limited), 1e-12);
  EXPECT_NEAR(distinct_shares(router(256, 8), 8), 8 * (1 - free), 1e-12);
}

TEST(TokenCopies, EveryCopyStaysOrLeavesByOnePort) {
  for (const int per_domain : {1, 2, 4, 8})
    for (const int domains : {1, 2, 4}) {
      const int ranks = per_domain * domains;
      const ExchangeLoad load = uniform_exchange(router(32, 4), ranks, per_domain, 100);
      // 400 copies of a rank; 1 of `ranks` stays.
      EXPECT_NEAR(load.direct.scale_up + load.direct.network, 400.0 * (ranks - 1) / ranks, 1e-9);
      EXPECT_NEAR(load.rails.network, load.direct.network, 1e-9);  // No copy is saved on a rail.
      EXPECT_LE(load.once.network, load.direct.network + 1e-9);
      EXPECT_LE(load.received, 400.0 + 1e-9);
      if (domains == 1) {
        EXPECT_EQ(load.once.network, 0.0);
      }
    }
}

}  // namespace
}  // namespace orrery::token_copies_test
