#pragma once

#include <gtest/gtest.h>

#include "sim/engine/simulation.hpp"
#include "sim/training/step_parts.hpp"
#include "sim/training/training_step.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery {

/// four-by-four without latencies, so that what is not said to take time takes none.
inline System without_latency() {
  System system = read_system("four-by-four", test_place);
  system.scale_up_latency = system.network_latency = Seconds{};
  return system;
}

/// A pipeline of `pp` stages with `vpp` chunks of one layer each, and `m` micro-batches a replica.
inline Scenario pipeline(const System& system, const Schedule* schedule, int pp, int vpp, int m,
                         int dp = 1, int tp = 1) {
  PlanRequest request = plan_request(tp, pp, 1, std::int64_t{m} * dp, 64, "megatron-2021");
  request.vpp = vpp;
  request.schedule = schedule;
  return scenario_of(small_gpt(pp * vpp, 64, 4, 128), system, request, tp * pp * dp);
}

/// A pass of kernels only.
inline PassCost kernels(Seconds time) {
  PassCost cost;
  cost.segments.push_back({time, {}, {}});
  cost.compute = time;
  return cost;
}

/// Prices chosen by hand: every chunk takes `forward` and `backward`, holds `parameters` and sends
/// `transfer`; the optimizer takes no time. Of `backward`, `weights` can be put off.
inline std::shared_ptr<StepCost> prices(const Scenario& scenario, Seconds forward, Seconds backward,
                                        Bytes transfer, std::int64_t parameters = 1,
                                        Seconds weights = {}) {
  auto cost = std::make_shared<StepCost>();
  StageCost stage{kernels(forward), kernels(backward), {}, parameters};
  stage.buckets = {{stage.forward, stage.backward, parameters}};
  if (weights > Seconds{}) {
    stage.input_gradient = kernels(backward - weights);
    stage.weight_gradient = kernels(weights);
    stage.buckets.front().input_gradient = stage.input_gradient;
    stage.buckets.front().weight_gradient = stage.weight_gradient;
  }
  cost->stages.assign(static_cast<std::size_t>(scenario.plan.virtual_stages()), stage);
  cost->transfer_bytes = transfer;
  cost->optimizer.resize(static_cast<std::size_t>(scenario.plan.pp));
  return cost;
}

/// The step's length by the way that an estimate goes: placement, cast, task graph, engine.
inline Seconds simulate(const Scenario& scenario, std::shared_ptr<const StepCost> cost) {
  const Placement placement{scenario.plan, scenario.system};
  const RankClasses classes = RankClasses::folded(placement);
  Topology topology = Topology::build(scenario.system, scenario.plan.gpus());
  const TrainingStep step = build_training_step(
      scenario, std::move(cost),
      StepTraffic{scenario, CollectiveTime{scenario.system}, placement.shapes()}, classes, topology,
      true);
  EXPECT_EQ(verify(step, scenario.plan), "");
  return step_window(scenario, step, execute(step.graph, topology)).length();
}

}  // namespace orrery
