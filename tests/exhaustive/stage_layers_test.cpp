// Every partition of eight layers into two or four virtual stages: folded, unfolded, expanded
// collective by collective, and by SimGrid alone.
#include <gtest/gtest.h>

#include "sim/training/contraction.hpp"
#include "sim/training/estimate.hpp"
#include "sim/training/training_step.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::stage_layers_test {
namespace {

constexpr int all_layers = 8;

// Cuts into `stages`, of which only the first and the last may be empty.
std::vector<std::vector<int>> cuts(int stages) {
  std::vector<std::vector<int>> all;
  std::vector<int> cut;
  const auto extend = [&](const auto& self, int left) -> void {
    const int stage = static_cast<int>(cut.size());
    if (stage == stages - 1) {
      all.push_back(cut);
      all.back().push_back(left);
      return;
    }
    for (int here = stage == 0 ? 0 : 1; here <= left; ++here) {
      cut.push_back(here);
      self(self, left - here);
      cut.pop_back();
    }
  };
  extend(extend, all_layers);
  return all;
}

Bytes weights_of(const Result& result) {
  Bytes sum;
  for (const StageMemory& stage : result.memory.stages) sum += stage.weights;
  return sum;
}

// Weights lie on some stage, wherever the cut is. 9 cuts into two: 0 to 8 layers before it. Into
// four, of which the inner two have one at least: six layers over four stages, 9 over 3 = 84.
TEST(StageLayers, EveryCutOfEightLayersFourWays) {
  const System system = read_system("four-by-four", test_place);
  int plans = 0;
  for (const auto& [pp, vpp] : {std::pair{2, 1}, std::pair{4, 1}, std::pair{2, 2}}) {
    PlanRequest request = plan_request(2, pp, 1, 2 * pp * (8 / pp), 240, "megatron-core");
    if (vpp > 1) request.vpp = vpp;
    const Scenario even = scenario_of(small_gpt(all_layers, 960, 8, 960), system, request, 16);
    const Estimate as_even = estimate(even);
    for (const std::vector<int>& cut : cuts(pp * vpp)) {
      request.layers.of = cut;
      const Scenario scenario = scenario_of(even.model, system, request, 16);
      SCOPED_TRACE("vpp " + std::to_string(vpp) + ", " + stage_layers_text(scenario.plan.layers));
      ASSERT_EQ(scenario.layers_of, cut);
      const Estimate folded = estimate(scenario);
      EXPECT_EQ(verify(folded.step, scenario.plan), "");
      const double step = folded.result.step_time.si();
      EXPECT_NEAR(folded.result.range.path.total().si(), step, 1e-6 * step);
      EXPECT_GE(step, (1 - 1e-9) * folded.result.lower_bound.si());
      EXPECT_EQ(weights_of(folded.result), weights_of(as_even.result));
      if (cut == even.layers_of) {
        EXPECT_EQ(folded.result.step_time, as_even.result.step_time);
      }
      for (const Detail detail : {Detail{.unfolded = true}, Detail{.expanded = true}})
        EXPECT_NEAR(estimate(scenario, detail).result.step_time.si() / step, 1.0,
                    detail.expanded ? contraction_tolerance : 1e-7);
      {
        const SimulatorChoice simgrid{Simulator::simgrid};
        EXPECT_NEAR(estimate(scenario).result.step_time.si() / step, 1.0, 1e-7);
      }
      EstimateContext context{scenario.system};
      EXPECT_NEAR(step_time(scenario, context).si() / step, 1.0, contraction_tolerance);
      ++plans;
    }
  }
  EXPECT_EQ(plans, 9 + 84 + 84);
}

}  // namespace
}  // namespace orrery::stage_layers_test
