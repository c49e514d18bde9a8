// Every small plan with context parallelism, four ways, as folding_test does without it.
#include <gtest/gtest.h>

#include <cmath>

#include "sim/core/error.hpp"
#include "sim/training/estimate.hpp"
#include "sim/training/training_step.hpp"
#include "tests/support/placements.hpp"

namespace orrery::context_test {
namespace {

struct Found {
  int plans = 0;
  double folding = 0.0;
  double contraction = 0.0;
  std::string where;
};

void compare(const Scenario& scenario, Found& found) {
  const std::string name =
      "tp=" + std::to_string(scenario.plan.tp) + " cp=" + std::to_string(scenario.plan.cp) +
      " pp=" + std::to_string(scenario.plan.pp) + " " + orrery::name(scenario.plan.cp_comm);
  SCOPED_TRACE(name);
  const Estimate folded = estimate(scenario);
  const Estimate unfolded = estimate(scenario, {.unfolded = true});
  const Estimate expanded = estimate(scenario, {.expanded = true});
  const Estimate whole = estimate(scenario, {.unfolded = true, .expanded = true});
  for (const Estimate* each : {&folded, &unfolded, &expanded, &whole}) {
    EXPECT_EQ(verify(each->step, scenario.plan), "");
    const double step = each->result.step_time.si();
    EXPECT_NEAR(each->result.busiest().sum().si(), step, 1e-9 * step);
    EXPECT_GE(each->result.busiest().cp_exposed.si(), -1e-9 * step);
  }
  const auto off = [](const Estimate& a, const Estimate& b) {
    return std::abs(a.result.step_time / b.result.step_time - 1.0);
  };
  const double folding = std::max(off(folded, unfolded), off(expanded, whole));
  if (folding > found.folding) found.folding = folding, found.where = name;
  found.contraction = std::max(found.contraction, off(unfolded, whole));
  ++found.plans;
}

// All tp x cp x pp x dp of `gpus` with cp > 1, overlapped ZeRO-1, each way of exchange. Three
// micro-batches a stage: the graphs differ from those of two by their steady state.
Found compare_plans(const System& system, int gpus) {
  const Model model = small_gpt(12, 1536, 12, 4096);
  Found found;
  for (int tp = 1; tp <= 2; ++tp)
    for (int cp = 2; cp <= gpus / tp; ++cp)
      for (int pp = 1; pp * cp * tp <= gpus && pp <= 3; ++pp) {
        if (gpus % (tp * cp * pp) != 0) continue;
        const int dp = gpus / (tp * cp * pp);
        for (ContextExchange exchange :
             {ContextExchange::p2p, ContextExchange::all_gather, ContextExchange::a2a}) {
          PlanRequest request = plan_request(tp, pp, 1, 3 * pp * dp, 960, "megatron-core");
          request.cp = cp;
          request.cp_comm = exchange;
          try {
            compare(scenario_of(model, system, request, gpus), found);
          } catch (const Error& error) {
            if (error.kind() != Error::Kind::infeasible) throw;  // Does not divide.
          }
        }
      }
  return found;
}

void expect_exact(const Found& found, int plans) {
  ::testing::Test::RecordProperty("folded_against_unfolded", std::to_string(found.folding));
  EXPECT_EQ(found.plans, plans);
  EXPECT_LT(found.folding, 1e-7) << found.where;
  EXPECT_LT(found.contraction, 1e-3);
}

// (tp, cp) x pp: 1 x (2, 4) x (1, 2), 1 x 8 x 1, 2 x 2 x (1, 2), 2 x 4 x 1, three ways each; 12
// heads do not swap over 8 ranks, nor a tensor rank's 6 over 4.
constexpr int plans_of_eight = 3 * 8 - 2;

TEST(ContextPlans, EightGpusInFourNodes) {
  expect_exact(compare_plans(nodes_of(2, 2), 8), plans_of_eight);
}

// 1 x 2 x (1, 2, 3), 1 x 3 x (1, 2), 1 x 4 x (1, 3), 1 x 6 x (1, 2), 1 x 12 x 1, 2 x 2 x (1, 3),
// 2 x 3 x (1, 2), 2 x 6 x 1.
TEST(ContextPlans, TwelveGpusInNodesOfThree) {
  expect_exact(compare_plans(nodes_of(3, 3), 12), 3 * 15);
}

TEST(ContextPlans, EightGpusTwoToANic) {
  expect_exact(compare_plans(nodes_of(4, 2), 8), plans_of_eight);
}

TEST(ContextPlans, AStraggler) {
  System system = nodes_of(2, 2);
  system.gpu_overrides.push_back({1, 0, 0.5});
  expect_exact(compare_plans(system, 8), plans_of_eight);
}

}  // namespace
}  // namespace orrery::context_test
