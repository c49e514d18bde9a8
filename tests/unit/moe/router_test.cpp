#include "sim/moe/router.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "tests/support/error_text.hpp"

namespace orrery::router_test {
namespace {

const Place at{"", "--moe-routing"};

RoutingShape shape_of(std::int64_t experts, std::int64_t per_token, int ranks, int per_domain,
                      std::int64_t tokens, int layers = 2) {
  RoutingShape shape;
  shape.experts.count = experts;
  shape.experts.per_token = per_token;
  shape.layers = layers;
  shape.ranks = ranks;
  shape.per_domain = per_domain;
  shape.tokens = tokens;
  return shape;
}

// Tokens in are tokens out and tokens dropped, for every expert and for every rank.
void expect_conserved(const Router& router, const RoutedBatch& batch, int layer) {
  const RoutingShape& shape = router.shape();
  EXPECT_EQ(batch.total_kept() + batch.total_dropped(), shape.copies());
  const ExpertPlacement& placement = router.placement(layer);
  std::vector<std::int64_t> of_expert = batch.dropped;
  std::int64_t of_ranks = 0;
  for (std::size_t slot = 0; slot < batch.kept.size(); ++slot) {
    EXPECT_GE(batch.kept[slot], 0);
    of_expert[static_cast<std::size_t>(placement.expert_of[slot])] += batch.kept[slot];
    of_ranks += batch.kept[slot];
  }
  EXPECT_EQ(of_ranks, batch.total_kept());
  std::int64_t asked = 0;
  for (const std::int64_t copies : of_expert) {
    EXPECT_LE(copies, shape.tokens * shape.ranks);  // A token visits an expert once.
    asked += copies;
  }
  EXPECT_EQ(asked, shape.copies());
  std::int64_t computed = 0;
  for (int rank = 0; rank < shape.ranks; ++rank)
    for (const std::int64_t copies : batch.computed_by(rank)) computed += copies;
  EXPECT_GE(computed, batch.total_kept());
  EXPECT_EQ(batch.exchange.tokens, static_cast<double>(shape.tokens));
}

TEST(Router, TokensAreConserved) {
  for (const char* word :
       {"uniform", "zipf:1.2", "zipf:4", "hot:0.9", "hot:1", "power-law:1.5", "aux-loss", "bias"})
    for (const int ranks : {1, 2, 8})
      for (const std::int64_t tokens : {1, 7, 64, 4096})
        for (const double factor : {0.0, 1.0, 1.5}) {
          RoutingPlan plan = read_routing(word, at);
          const RoutingShape shape = shape_of(16, 2, ranks, std::min(ranks, 4), tokens);
          if (factor > 0.0) plan.capacity_factor = factor;
          if (factor * static_cast<double>(tokens) * 2 / 16 < 1.0 && factor > 0.0) continue;
          for (const bool pad : {false, true}) {
            plan.pad_to_capacity = pad && factor > 0.0;
            for (const int redundant : {0, 8}) {
              plan.redundant_experts = redundant;
              plan.balanced_placement = redundant > 0;
              const Router router{plan, shape, at};
              for (int layer = 0; layer < 2; ++layer)
                for (int micro_batch = 0; micro_batch < 3; ++micro_batch)
                  expect_conserved(router, router.route(layer, micro_batch, 0), layer);
            }
          }
        }
}

TEST(Router, AnEvenRouterIsTheClosedForm) {
  const RoutingShape shape = shape_of(64, 4, 16, 8, 1000);
  const RoutedBatch batch = Router{read_routing("uniform", at), shape, at}.route(0, 0, 0);
  for (const std::int64_t copies : batch.kept) EXPECT_EQ(copies, 1000 * 16 * 4 / 64);
  const ExchangeLoad even = uniform_exchange(shape.experts, 16, 8, 1000);
  EXPECT_EQ(batch.exchange.once.network, even.once.network);
  EXPECT_EQ(batch.exchange.direct.network, even.direct.network);
  const RoutedBatch in_turn = Router{read_routing("round-robin", at), shape, at}.route(0, 0, 0);
  EXPECT_EQ(in_turn.kept, batch.kept);
  EXPECT_EQ(in_turn.exchange.once.network,
            uniform_exchange(shape.experts, 16, 8, 1000, EvenChoice::in_turn).once.network);
  EXPECT_LT(in_turn.exchange.once.network, even.once.network);
  EXPECT_EQ(in_turn.exchange.direct.network, even.direct.network);
}

TEST(Router, DrawsDependOnWhatTheyAreForAndOnNothingElse) {
  const RoutingShape shape = shape_of(64, 4, 8, 8, 512);
  RoutingPlan plan = read_routing("zipf:1", at);
  const Router router{plan, shape, at};
  const auto first = router.route(0, 0, 0).kept;
  EXPECT_NE(router.route(0, 1, 0).kept, first);  // Another micro-batch,
  EXPECT_NE(router.route(0, 0, 1).kept, first);  // another replica,
  EXPECT_NE(router.route(1, 0, 0).kept, first);  // another layer;
  EXPECT_EQ(router.route(0, 0, 0).kept, first);  // and the same again.
  plan.identical_replicas = true;
  EXPECT_EQ((Router{plan, shape, at}.route(0, 0, 5).kept),
            (Router{plan, shape, at}.route(0, 0, 0).kept));
  plan.seed = 2;
  EXPECT_NE((Router{plan, shape, at}.route(0, 0, 0).kept), first);
}

// The very counts, so that another machine or a change of the generator shows.
TEST(Router, TheSameDrawEverywhere) {
  RoutingPlan plan = read_routing("zipf:1", at);
  const Router router{plan, shape_of(8, 2, 4, 4, 1000), at};
  EXPECT_EQ(router.route(0, 0, 0).kept,
            (std::vector<std::int64_t>{960, 499, 392, 1465, 419, 2923, 730, 612}));
}

// A sampled load is a binomial: mean T v, variance T v (1 - v).
TEST(Router, SampledLoadsHaveTheirMoments) {
  RoutingPlan plan = read_routing("uniform", at);
  plan.even = false;
  const RoutingShape shape = shape_of(64, 4, 8, 8, 512, 1);
  const Router router{plan, shape, at};
  const double mean = 512.0 * 8 * 4 / 64, variance = mean * (1.0 - 4.0 / 64);
  double sum = 0.0, squares = 0.0;
  constexpr int draws = 500;
  for (int i = 0; i < draws; ++i)
    for (const std::int64_t copies : router.route(0, i, 0).kept) {
      const double off = static_cast<double>(copies) - mean;
      sum += off, squares += off * off;
    }
  EXPECT_NEAR(sum, 0.0, 1e-6);  // Every draw sums to all copies.
  // Given the sum, 63/64 of the variance is left; 32,000 draws: a standard error of 0.8 %.
  EXPECT_NEAR(squares / (draws * 64), variance * 63 / 64, 0.03 * variance);
}

// An expert with 90 % of the tokens: its rank computes 0.9 of them and its share of the rest.
TEST(Router, AHotExpertsRankIsThatMuchSlower) {
  const RoutingShape shape = shape_of(8, 2, 8, 8, 100000, 1);
  const RoutedBatch batch = Router{read_routing("hot:0.9", at), shape, at}.route(0, 0, 0);
  std::vector<double> loads(batch.kept.begin(), batch.kept.end());
  EXPECT_NEAR(imbalance(loads), 0.9 * 8 / 2, 0.01);
}

// Dropped of all: each rank's copies of an expert are a binomial of its tokens.
TEST(Router, DropsAreTheBinomialExpectation) {
  RoutingPlan plan = read_routing("hot:0.9", at);
  plan.capacity_factor = 1.0;
  const RoutingShape shape = shape_of(8, 2, 4, 4, 4096, 1);
  const RoutedBatch batch = Router{plan, shape, at}.route(0, 0, 0);
  const std::int64_t capacity = expert_capacity(1.0, 4096, 2, 8);
  double expected = 0.0;
  for (std::size_t e = 0; e < 8; ++e) {
    const double share = static_cast<double>(batch.kept[e] + batch.dropped[e]) / (4 * 4096.0);
    expected += 4 * binomial_excess(4096, share, capacity);
  }
  EXPECT_NEAR(static_cast<double>(batch.total_dropped()), expected, 8 * 0.5);
  // 0.9 x 4096 x 4 less the capacity of 4 x 1024.
  EXPECT_NEAR(static_cast<double>(batch.total_dropped()), 0.9 * 4096 * 4 - 4096, 150);
}

TEST(Router, PaddingComputesTheCapacityWhateverCame) {
  RoutingPlan plan = read_routing("zipf:1", at);
  plan.capacity_factor = 1.25;
  plan.pad_to_capacity = true;
  const RoutedBatch batch = Router{plan, shape_of(8, 2, 4, 4, 1024), at}.route(0, 0, 0);
  for (const std::int64_t copies : batch.computed) EXPECT_EQ(copies, 4 * 320);
}

TEST(Router, ABalancedPlacementIsFlatter) {
  const RoutingShape shape = shape_of(64, 4, 8, 8, 4096, 4);
  RoutingPlan plan = read_routing("zipf:1", at);
  const auto worst = [&](int redundant, bool balanced) {
    plan.redundant_experts = redundant;
    plan.balanced_placement = balanced;
    const Router router{plan, shape, at};
    double most = 0.0;
    for (int layer = 0; layer < 4; ++layer) {
      const RoutedBatch batch = router.route(layer, 0, 0);
      std::vector<double> loads(8, 0.0);
      for (std::size_t slot = 0; slot < batch.kept.size(); ++slot)
        loads[slot / static_cast<std::size_t>(batch.slots_per_rank)] +=
            static_cast<double>(batch.kept[slot]);
      most = std::max(most, imbalance(loads));
    }
    return most;
  };
  EXPECT_GT(worst(0, false), 2.0);
  EXPECT_LT(worst(0, true), worst(0, false));
  EXPECT_LT(worst(16, true), 1.1);
}

TEST(Router, ATraceIsWhatItSays) {
  std::string text;
  for (int rank = 0; rank < 2; ++rank)
    text += "{\"layer\": 0, \"micro_batch\": 0, \"rank\": " + std::to_string(rank) +
            ", \"tokens\": [" + (rank == 0 ? "8, 4, 3, 1" : "0, 0, 8, 8") + "]}\n";
  RoutingPlan plan;
  plan.even = false;
  plan.trace = std::make_shared<const RoutingTrace>(parse_trace(text, "t"));
  const RoutingShape shape = shape_of(4, 2, 2, 1, 8, 1);
  const Router router{plan, shape, at};
  const RoutedBatch batch = router.route(0, 0, 0);
  expect_conserved(router, batch, 0);
  EXPECT_EQ(batch.kept, (std::vector<std::int64_t>{8, 4, 11, 9}));
  EXPECT_EQ(batch.exchange.direct.network, 4.0);  // Rank 0's to rank 1; back there are none.
  EXPECT_EQ(router.route(0, 3, 1).kept, batch.kept);

  plan.capacity_factor = 1.0;  // 4 of each rank for each expert.
  const RoutedBatch capped = Router{plan, shape, at}.route(0, 0, 0);
  EXPECT_EQ(capped.kept, (std::vector<std::int64_t>{4, 4, 7, 5}));
  EXPECT_EQ(capped.dropped, (std::vector<std::int64_t>{4, 0, 4, 4}));
}

TEST(Router, WhatCannotBeIsRefused) {
  RoutingPlan plan = read_routing("zipf:1", at);
  const auto refusal = [&](const RoutingShape& shape) {
    return error_text([&] { Router(plan, shape, at); });
  };
  EXPECT_EQ(refusal(shape_of(6, 2, 4, 4, 100)),
            "--moe-routing: 6 experts and 0 redundant ones do not divide among 4 ranks; give every "
            "rank as many");
  plan.capacity_factor = 0.01;
  EXPECT_EQ(refusal(shape_of(8, 1, 4, 4, 64)),
            "--moe-routing: a capacity factor of 0.010000 leaves an expert less than one token of "
            "a rank; raise it to at least 0.125000");
  plan = read_routing("hot:0.5", at);
  EXPECT_EQ(refusal(shape_of(4, 4, 4, 4, 64)),
            "--moe-routing: every token visits all experts, so that none can be hotter; take "
            "another routing");
}

// 64 ranks, 256 experts, 61 layers, 100 micro-batches: well under a second.
TEST(Router, AWholeStepIsSampledQuickly) {
  const RoutingShape shape = shape_of(256, 8, 64, 8, 4096, 61);
  const Router router{read_routing("zipf:1", at), shape, at};
  const auto start = std::chrono::steady_clock::now();
  double most = 0.0;
  for (int layer = 0; layer < 61; ++layer)
    for (int micro_batch = 0; micro_batch < 100; ++micro_batch)
      most = std::max(most, router.route(layer, micro_batch, 0).exchange.received);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf("6,100 draws in %.3f s\n", took.count());
  EXPECT_GT(most, 0.0);
  EXPECT_LT(took.count(), 5.0);  // A loaded machine with assertions on; alone it is 0.1 s.
}

}  // namespace
}  // namespace orrery::router_test
