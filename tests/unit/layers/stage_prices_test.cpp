#include "sim/layers/stage_prices.hpp"

#include <gtest/gtest.h>

#include "sim/layers/step_cost.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::stage_prices_test {
namespace {

void expect_close(Seconds a, Seconds b) { EXPECT_NEAR(a.si(), b.si(), 1e-12 * b.si()); }

// Lengths without segments are the lengths of the segments.
void expect_lengths_of_step(const Scenario& scenario, double speed) {
  const KernelModel kernels{scenario.system.gpu, scenario.plan.dtype, nullptr};
  const CollectiveTime collectives{scenario.system};
  GroupShapes shapes;
  shapes.tensor = {scenario.plan.tp, 1, scenario.plan.tp, {}};
  shapes.expert = {scenario.plan.ep, 1, scenario.plan.ep, {}};
  const StepCost whole = price_step(scenario, kernels, collectives, shapes);
  const auto lengths = price_passes(scenario, kernels, collectives, shapes, speed);
  ASSERT_EQ(lengths.size(), whole.stages.size());
  for (std::size_t v = 0; v < lengths.size(); ++v) {
    expect_close(lengths[v].forward.time, whole.stages[v].forward.time(speed));
    expect_close(lengths[v].backward.time, whole.stages[v].backward.time(speed));
    expect_close(lengths[v].forward.compute, whole.stages[v].forward.compute / speed);
    expect_close(lengths[v].backward.compute, whole.stages[v].backward.compute / speed);
  }
}

TEST(PricePasses, AddsUpToTheStep) {
  const System system = read_system("four-by-four", test_place);
  for (const char* software : {"megatron-2021", "megatron-core"})
    for (int pp : {1, 2, 4})
      for (int vpp : {1, 2})
        for (bool sp : {false, true}) {
          if (pp == 1 && vpp > 1) continue;
          PlanRequest request = plan_request(2, pp, 1, 16, 256, software);
          request.vpp = vpp;
          request.sp = sp;
          request.recompute = Recompute::full;
          const int gpus = 4 * pp;
          expect_lengths_of_step(scenario_of(small_gpt(8, 256, 8, 2048), system, request, gpus),
                                 0.5);
          if (!sp) continue;
          request.ep = 2;
          expect_lengths_of_step(
              scenario_of(small_mixture(8, 256, 8, 2048, 4, 2, 1), system, request, gpus), 1.25);
        }
}

}  // namespace
}  // namespace orrery::stage_prices_test
