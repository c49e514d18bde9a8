// Every small plan of a mixture of experts, four ways: folded or not, contracted or not.
#include <gtest/gtest.h>

#include <cmath>
#include <span>

#include "sim/layers/routed_loads.hpp"
#include "sim/training/contraction.hpp"
#include "sim/training/estimate.hpp"
#include "sim/training/training_step.hpp"
#include "tests/support/conserved.hpp"
#include "tests/support/placements.hpp"

namespace orrery::experts_test {
namespace {

// Modes of gradient and weight traffic.
struct DataChoice {
  bool overlap;
  int zero;
};
constexpr DataChoice once_a_step[] = {{false, 0}, {true, 1}};
constexpr DataChoice in_every_pass[] = {{true, 2}, {false, 3}, {true, 3}};

// Calls visit(name, scenario) for every tp x pp x dp = 8 with every ep x etp that divides, data
// parallelism overlapped and sharded or not.
template <class Visit>
int for_each_expert_plan(const System& system, const std::string& routing, const Visit& visit,
                         std::span<const DataChoice> choices = once_a_step) {
  const Model model = small_mixture(4, 1024, 8, 4096, 8, 2, 1);
  int plans = 0;
  for (int tp : {1, 2, 4})
    for (int pp : {1, 2})
      for (int ep : {1, 2, 4, 8})
        for (int etp : {1, 2})
          for (const auto& [overlap, zero] : choices) {
            const int dp = 8 / (tp * pp);
            if (tp * dp % (ep * etp) != 0) continue;
            PlanRequest request = plan_request(tp, pp, 1, 4 * dp, 256, "megatron-core");
            request.ep = ep;
            request.etp = etp;
            request.routing = routing;
            request.dp_overlap = overlap;
            request.zero = zero;
            const std::string name = "tp " + std::to_string(tp) + " pp " + std::to_string(pp) +
                                     " ep " + std::to_string(ep) + " etp " + std::to_string(etp) +
                                     " zero " + std::to_string(zero) +
                                     (overlap ? " overlapped" : "");
            SCOPED_TRACE(name);
            visit(name, scenario_of(model, system, request, 8));
            ++plans;
          }
  return plans;
}

void expect_same_four_ways(const Scenario& scenario) {
  expect_tokens_conserved(scenario);
  const Estimate folded = estimate(scenario);
  const double step = folded.result.step_time.si();
  EXPECT_EQ(verify(folded.step, scenario.plan), "");
  for (const Detail detail : {Detail{.unfolded = true}, Detail{.expanded = true},
                              Detail{.unfolded = true, .expanded = true}}) {
    const Estimate other = estimate(scenario, detail);
    EXPECT_EQ(verify(other.step, scenario.plan), "");
    EXPECT_NEAR(other.result.step_time.si() / step, 1.0,
                detail.expanded ? contraction_tolerance : 1e-7);
    EXPECT_NEAR(other.result.busiest().sum().si() / other.result.step_time.si(), 1.0, 1e-9);
    expect_tokens_to_come_back(other.result);
  }
}

void compare(const System& system, const std::string& routing, int expected_plans,
             std::span<const DataChoice> choices = once_a_step) {
  const auto visit = [](const std::string&, const Scenario& scenario) {
    expect_same_four_ways(scenario);
  };
  EXPECT_EQ(for_each_expert_plan(system, routing, visit, choices), expected_plans);
}

// tp 1, 2, 4 x overlap; ep x etp that divide the 8 ranks of pp 1: 7 of 8; the 4 of pp 2: 5.
constexpr int all_plans = 3 * 2 * (7 + 5);
TEST(Experts, EightGpusInNodesOfFour) {
  compare(read_system("four-by-four", test_place), "uniform", all_plans);
}
TEST(Experts, EightGpusInPairs) {
  compare(read_system("two-gpus", test_place), "uniform", all_plans);
}
TEST(Experts, EightGpusInNodesOfThree) { compare(nodes_of(3, 3), "uniform", all_plans); }

// tp 1, 2, 4 x three choices.
constexpr int all_sharded_plans = 3 * 3 * (7 + 5);
TEST(ShardedExperts, EightGpusInNodesOfFour) {
  compare(read_system("four-by-four", test_place), "uniform", all_sharded_plans, in_every_pass);
}
TEST(ShardedExperts, EightGpusInPairs) {
  compare(read_system("two-gpus", test_place), "uniform", all_sharded_plans, in_every_pass);
}
TEST(ShardedExperts, ZipfInNodesOfThree) {
  compare(nodes_of(3, 3), "zipf:1", all_sharded_plans, in_every_pass);
}

TEST(UnevenExperts, ZipfInNodesOfFour) {
  compare(read_system("four-by-four", test_place), "zipf:1", all_plans);
}
TEST(UnevenExperts, HotExpertInPairs) {
  compare(read_system("two-gpus", test_place), "hot:0.9", all_plans);
}

TEST(UnevenExperts, ZipfOnSharedNics) { compare(nodes_of(4, 2), "zipf:1", all_plans); }
TEST(UnevenExperts, ZipfOnOneNicANode) { compare(nodes_of(4, 1), "zipf:1", all_plans); }
TEST(UnevenExperts, SampledWithDrops) {
  compare(read_system("two-gpus", test_place), "zipf-1-capacity", all_plans);
}

// Dispatch and combine overlapped with kernels: of the shared experts, or of another micro-batch
// with its weight gradients delayed or not. Several stages need two chunks.
int for_each_overlapped_plan(const System& system, const std::string& routing) {
  Model model = small_mixture(4, 1024, 8, 4096, 8, 2, 1);
  model.experts->shared_ffn = 1024;
  int plans = 0;
  for (int tp : {1, 2})
    for (int pp : {1, 2})
      for (int ep : {2, 4, 8})
        for (int variant = 0; variant < 6; ++variant) {
          const int dp = 8 / (tp * pp);
          if (tp * dp % ep != 0) continue;
          PlanRequest request = plan_request(tp, pp, 1, 6 * dp, 256, "megatron-core");
          request.ep = ep;
          request.routing = routing;
          request.dp_overlap = variant % 2 == 1;
          request.zero = variant % 2;
          request.shared_expert_overlap = variant / 2 == 0;
          request.ep_overlap = variant / 2 > 0;
          request.delay_wgrad = variant / 2 == 2;
          if (request.ep_overlap && pp > 1) request.vpp = 2;
          SCOPED_TRACE("tp " + std::to_string(tp) + " pp " + std::to_string(pp) + " ep " +
                       std::to_string(ep) + " variant " + std::to_string(variant));
          const Scenario scenario = scenario_of(model, system, request, 8);
          expect_same_four_ways(scenario);
          ++plans;
          // One stage only gains, where the host keeps up: kernels that leave a part for which the
          // GPU waits do not shorten it. Several may lose, as a pass's output waits for its
          // partner.
          if (pp > 1) continue;
          request.shared_expert_overlap = request.ep_overlap = request.delay_wgrad = false;
          const auto step_of = [](Scenario on_a_fast_host) {
            on_a_fast_host.software.expert_layer_host = {};
            return estimate(on_a_fast_host).result.step_time.si();
          };
          EXPECT_LE(step_of(scenario), step_of(scenario_of(model, system, request, 8)));
        }
  return plans;
}

// tp 1, 2 x overlaps: ep that divide the 8 ranks of pp 1: 3; the 4 of pp 2: 2.
constexpr int overlapped_plans = 2 * 6 * (3 + 2);

TEST(OverlappedExperts, EightGpusInNodesOfFour) {
  EXPECT_EQ(for_each_overlapped_plan(read_system("four-by-four", test_place), "uniform"),
            overlapped_plans);
}
TEST(OverlappedExperts, ZipfInPairs) {
  EXPECT_EQ(for_each_overlapped_plan(read_system("two-gpus", test_place), "zipf:1"),
            overlapped_plans);
}

// One expert among those of 90 % of the tokens, of 8 with two a token: its rank has 0.9 T k / k of
// each rank's tokens and its share of the other 1.1 T, where the mean is 2 T / ep. With kernels
// that only follow rows, the experts' part of the step grows as the fullest rank.
TEST(UnevenExperts, HotExpertSlowsItsRank) {
  const Model model = small_mixture(4, 1024, 8, 4096, 8, 2);
  PlanRequest request = plan_request(1, 1, 1, 8, 2048, "megatron-core");
  request.ep = 8;
  request.routing = "hot:0.9";
  const Scenario scenario = scenario_of(model, read_system("four-by-four", test_place), request, 8);
  const Estimate hot = estimate(scenario);
  ASSERT_TRUE(hot.result.routing);
  // The hot expert alone on its rank: 0.9 of 8 T rows against a mean of 2 T; binomial noise.
  EXPECT_NEAR(hot.result.routing->max_over_mean, 0.9 * 8 / 2, 0.05);
  EXPECT_GT(hot.result.routing->lost.compute, Seconds{});
  EXPECT_NEAR(hot.result.routing->hottest.front().over_mean, 0.9 / (2.0 / 8), 0.05);
  EXPECT_EQ(hot.result.routing->dropped_a_step, 0);
}

}  // namespace
}  // namespace orrery::experts_test
