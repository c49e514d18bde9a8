// Every small plan of a mixture of experts, four ways: folded or not, contracted or not.
#include <gtest/gtest.h>

#include <cmath>

#include "sim/cost/routed_loads.hpp"
#include "sim/estimate/estimate.hpp"
#include "sim/graph/contraction.hpp"
#include "sim/graph/verify.hpp"
#include "tests/support/placements.hpp"

namespace orrery {
namespace {

// Calls visit(name, scenario) for every tp x pp x dp = 8 with every ep x etp that divides, data
// parallelism overlapped and sharded or not; of uneven routing only where a replica's tensor ranks
// lie in one expert group.
template <class Visit>
int for_each_expert_plan(const System& system, const std::string& routing, const Visit& visit) {
  const Model model = small_mixture(4, 1024, 8, 4096, 8, 2, 1);
  int plans = 0;
  for (int tp : {1, 2, 4})
    for (int pp : {1, 2})
      for (int ep : {1, 2, 4, 8})
        for (int etp : {1, 2})
          for (bool overlap : {false, true}) {
            const int dp = 8 / (tp * pp);
            if (tp * dp % (ep * etp) != 0) continue;
            if (routing != "uniform" && ep * etp % tp != 0) continue;
            PlanRequest request = plan_request(tp, pp, 1, 4 * dp, 256, "megatron-core");
            request.ep = ep;
            request.etp = etp;
            request.routing = routing;
            request.dp_overlap = overlap;
            request.zero = overlap ? 1 : 0;
            const std::string name = "tp " + std::to_string(tp) + " pp " + std::to_string(pp) +
                                     " ep " + std::to_string(ep) + " etp " + std::to_string(etp) +
                                     (overlap ? " overlapped" : "");
            SCOPED_TRACE(name);
            visit(name, scenario_of(model, system, request, 8));
            ++plans;
          }
  return plans;
}

void expect_conserved(const Scenario& scenario) {
  const GroupShapes shapes = Placement{scenario.plan, scenario.system}.shapes();
  const RoutedLoads loads{scenario, shapes, {}};
  const std::int64_t copies = loads.shape().copies();
  for (int g = 0; g < loads.groups(); ++g)
    for (int m = 0; m < loads.micro_batches(); ++m)
      for (int l = 0; l < loads.layers() && !loads.even(); ++l) {
        const RoutedBatch& batch = loads.batch(g, m, l);
        EXPECT_EQ(batch.total_kept() + batch.total_dropped(), copies);
        std::int64_t computed = 0;
        for (int r = 0; r < loads.shape().ranks; ++r)
          for (std::int64_t rows : batch.computed_by(r)) computed += rows;
        EXPECT_EQ(computed, batch.total_kept());  // Nothing is padded here.
      }
}

void compare(const System& system, const std::string& routing, int expected_plans) {
  const auto visit = [](const std::string&, const Scenario& scenario) {
    expect_conserved(scenario);
    const Estimate folded = estimate(scenario);
    const double step = folded.result.step_time.si();
    for (const Detail detail : {Detail{.unfolded = true}, Detail{.expanded = true},
                                Detail{.unfolded = true, .expanded = true}}) {
      const Estimate other = estimate(scenario, detail);
      EXPECT_EQ(verify(other.step, scenario.plan), "");
      EXPECT_NEAR(other.result.step_time.si() / step, 1.0,
                  detail.expanded ? contraction_tolerance : 1e-7);
      EXPECT_NEAR(other.result.breakdown.sum().si() / other.result.step_time.si(), 1.0, 1e-9);
    }
  };
  EXPECT_EQ(for_each_expert_plan(system, routing, visit), expected_plans);
}

// tp 1, 2, 4 x overlap; ep x etp that divide the 8 ranks of pp 1: 7 of 8; the 4 of pp 2: 5.
constexpr int even_plans = 3 * 2 * (7 + 5);
// Of these (ep x etp) multiples of tp: 7 + 5; without 1: 6 + 4; without 2 and 1 x 2: 4 + 2.
constexpr int uneven_plans = 2 * (12 + 10 + 6);

TEST(Experts, EightGpusInNodesOfFour) {
  compare(read_system("four-by-four", test_place), "uniform", even_plans);
}
TEST(Experts, EightGpusInPairs) {
  compare(read_system("two-gpus", test_place), "uniform", even_plans);
}
TEST(Experts, EightGpusInNodesOfThree) { compare(nodes_of(3, 3), "uniform", even_plans); }

TEST(UnevenExperts, ZipfInNodesOfFour) {
  compare(read_system("four-by-four", test_place), "zipf:1", uneven_plans);
}
TEST(UnevenExperts, HotExpertInPairs) {
  compare(read_system("two-gpus", test_place), "hot:0.9", uneven_plans);
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
}  // namespace orrery
