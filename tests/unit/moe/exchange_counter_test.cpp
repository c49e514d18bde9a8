#include "sim/moe/exchange_counter.hpp"

#include <gtest/gtest.h>

namespace orrery::exchange_counter_test {
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

void expect_same(const ExchangeLoad& a, const ExchangeLoad& b) {
  EXPECT_NEAR(a.tokens, b.tokens, 1e-9);
  EXPECT_NEAR(a.direct.scale_up, b.direct.scale_up, 1e-8);
  EXPECT_NEAR(a.direct.network, b.direct.network, 1e-8);
  EXPECT_NEAR(a.rails.scale_up, b.rails.scale_up, 1e-8);
  EXPECT_NEAR(a.rails.network, b.rails.network, 1e-8);
  EXPECT_NEAR(a.once.scale_up, b.once.scale_up, 1e-8);
  EXPECT_NEAR(a.once.network, b.once.network, 1e-8);
  EXPECT_NEAR(a.received, b.received, 1e-8);
}

TEST(Exchange, EvenLoadsAreTheClosedForm) {
  for (const Experts& experts : {router(32, 1), router(32, 4), router(32, 4, 8, 2)})
    for (const int per_domain : {1, 2, 4, 8})
      for (const int domains : {1, 2, 4}) {
        const int ranks = per_domain * domains;
        const double tokens = 100;
        const ExchangeCounter counter{experts, contiguous_placement(32, ranks), per_domain, tokens};
        const double each = tokens * ranks * static_cast<double>(experts.per_token) / 32;
        expect_same(counter.even(std::vector<double>(32, each)),
                    uniform_exchange(experts, ranks, per_domain, tokens));
      }
}

TEST(Exchange, RanksThatSendTheSameAreEven) {
  const Experts experts = router(16, 4);
  for (const int per_domain : {1, 2, 4, 8}) {
    const ExchangeCounter counter{experts, contiguous_placement(16, 8), per_domain, 50};
    std::vector<double> all(16), one(16);
    for (int e = 0; e < 16; ++e) {
      one[static_cast<std::size_t>(e)] = e < 5 ? 30 : 50.0 / 11;  // 4 x 50 copies
      all[static_cast<std::size_t>(e)] = 8 * one[static_cast<std::size_t>(e)];
    }
    expect_same(counter.even(all), counter.uneven(std::vector<std::vector<double>>(8, one)));
  }
}

TEST(Exchange, OneExpertThatAllVisitFillsItsPort) {
  // 8 ranks in 2 nodes, every token to expert 0 on rank 0 and to nothing else. Its NIC takes 4 x
  // 100 tokens directly; over rails each of the other node's ranks sends its own 100 to rank 0's
  // rail; and once: every rank's 100 tokens reach its rail's rank of node 0, which forwards.
  const ExchangeCounter counter{router(8, 1), contiguous_placement(8, 8), 4, 100};
  std::vector<double> slots(8, 0.0);
  slots[0] = 800;
  const ExchangeLoad load = counter.even(slots);
  EXPECT_NEAR(load.direct.network, 400, 1e-9);
  EXPECT_NEAR(load.direct.scale_up, 300, 1e-9);
  EXPECT_NEAR(load.rails.network, 400, 1e-9);
  EXPECT_NEAR(load.once.network, 100, 1e-9);
  EXPECT_NEAR(load.once.scale_up, 600, 1e-9);  // Three relays with two ranks' tokens each.
  EXPECT_NEAR(load.received, 800, 1e-9);
}

// What goes out of ports comes in at ports: one source, one destination.
TEST(Exchange, OneRankToOneRank) {
  const ExchangeCounter counter{router(4, 1), contiguous_placement(4, 4), 2, 10};
  std::vector<std::vector<double>> sent(4, std::vector<double>(4, 0.0));
  sent[0][3] = 10;  // Rank 0 of node 0 to rank 1 of node 1.
  const ExchangeLoad load = counter.uneven(sent);
  EXPECT_NEAR(load.direct.network, 10, 1e-9);
  EXPECT_EQ(load.direct.scale_up, 0.0);
  EXPECT_NEAR(load.rails.scale_up, 10, 1e-9);  // To rank 1 of its own node first.
  EXPECT_NEAR(load.rails.network, 10, 1e-9);
  EXPECT_NEAR(load.once.network, 10, 1e-9);   // Along its rail to rank 0 of node 1,
  EXPECT_NEAR(load.once.scale_up, 10, 1e-9);  // and from there.
  EXPECT_NEAR(load.received, 10, 1e-9);
}

}  // namespace
}  // namespace orrery::exchange_counter_test
