#include "sim/estimate/estimate.hpp"

#include <cassert>
#include <chrono>
#include <cstdio>

#include "sim/cost/routed_loads.hpp"
#include "sim/engine/execute.hpp"
#include "sim/graph/verify.hpp"
#include "sim/result/deciding_path.hpp"
#include "sim/result/summary.hpp"

namespace orrery {
namespace {

std::string gigabytes(Bytes bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GB", bytes.si() / 1e9);
  return text;
}

void refuse_what_does_not_fit(const Scenario& scenario, const MemoryReport& memory) {
  if (memory.fits()) return;
  std::string remedy = nearest_fit(scenario);
  if (remedy.empty()) remedy = "use more GPUs, or GPUs with more memory";
  fail_infeasible({}, shortfall_text(memory), remedy);
}

// A plan, and where its tokens go: as many different expert groups as are drawn.
struct Routed {
  explicit Routed(const Scenario& given)
      : scenario{given}, loads{given, Placement{given.plan, given.system}.shapes(), {}} {
    scenario.plan.routing_draws = loads.groups();
  }

  Scenario scenario;
  RoutedLoads loads;
};

TrainingStep build(const Routed& routed, EstimateContext& context, const Topology& topology,
                   const Layout& layout, Detail detail) {
  const Scenario& scenario = routed.scenario;
  // What everything costs by itself.
  const CollectiveTime& collectives = context.collectives();
  const auto cost = std::make_shared<const StepCost>(price_step(
      scenario, context.kernels(scenario.plan.dtype), collectives, layout.shapes, &routed.loads));

  // The step as tasks, and the wires that they share.
  const Contraction contraction =
      detail.expanded ? Contraction{false}
                      : choose_contraction(scenario, *cost, layout.cast.placement());
  return build_training_step(scenario, cost, collectives, layout.shapes, layout.cast, topology,
                             contraction);
}

}  // namespace

std::string shortfall_text(const MemoryReport& memory) {
  return "the plan does not fit: stage " + std::to_string(memory.fullest_stage()) + " needs " +
         gigabytes(memory.peak()) + " a GPU, which has " + gigabytes(memory.capacity) + ", " +
         gigabytes(memory.peak() - memory.capacity) + " too much";
}

Estimate estimate(const Scenario& scenario, Detail detail) {
  EstimateContext context{scenario.system};
  return estimate(scenario, context, detail);
}

Estimate estimate(const Scenario& given, EstimateContext& context, Detail detail) {
  const auto begin = std::chrono::steady_clock::now();
  const Routed routed{given};
  const Scenario& scenario = routed.scenario;

  // A plan that cannot run gets a reason and no time.
  const MemoryReport memory = memory_of(scenario, routed.loads.fullest(scenario));
  refuse_what_does_not_fit(scenario, memory);

  // Who is where, and who must be simulated.
  const Placement placement{scenario.plan, scenario.system};
  Topology topology = Topology::build(scenario.system, scenario.plan.gpus());
  const Layout layout = lay_out(scenario.system, placement, topology, detail.unfolded);
  TrainingStep step = build(routed, context, topology, layout, detail);
  assert(verify(step, scenario.plan).empty());

  Timeline timeline = execute(step.graph, topology);
  Result result = summarize(scenario, memory, step, timeline, topology, &routed.loads);
  result.range = range_of(scenario, step, timeline, topology, context.price_errors(scenario));
  result.simulation_wall =
      Seconds{std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
  return {std::move(result), std::move(step), std::move(timeline), std::move(topology)};
}

Seconds step_time(const Scenario& scenario, EstimateContext& context) {
  const Routed routed{scenario};
  const Layout& layout = context.layout(Placement{routed.scenario.plan, scenario.system});
  const Topology& topology = context.topology(scenario.plan.gpus());
  return execute(build(routed, context, topology, layout, {}).graph, topology).makespan;
}

}  // namespace orrery
