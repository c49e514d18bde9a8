#include "sim/training/estimate.hpp"

#include <algorithm>

#include "sim/core/number_text.hpp"
#include "sim/core/stopwatch.hpp"
#include "sim/engine/execute.hpp"
#include "sim/training/host_memory.hpp"
#include "sim/training/routed.hpp"
#include "sim/training/sound.hpp"
#include "sim/training/steady_state.hpp"
#include "sim/training/step_window.hpp"
#include "sim/training/summary.hpp"

namespace orrery {
namespace {

void refuse_what_does_not_fit(const Scenario& scenario, const MemoryReport& memory, double most) {
  if (memory.peak() <= most * memory.capacity) return;
  std::string remedy = nearest_fit(scenario);
  if (remedy.empty())
    remedy = "use more GPUs, or GPUs with more memory";
  else if (!remedy.starts_with("use --gpus"))
    remedy += ", or see what orrery search finds";
  const std::string why = scenario.why_software.empty() ? "" : " (" + scenario.why_software + ")";
  fail_infeasible({}, shortfall_text(memory) + why, remedy);
}

}  // namespace

Routed::Routed(const Scenario& given, EstimateContext& context)
    : scenario{given}, loads{context.loads(given)} {
  scenario.plan.routing_draws = loads->groups();
}

std::shared_ptr<const StepCost> price(const Routed& routed, EstimateContext& context,
                                      const Layout& layout) {
  const Scenario& scenario = routed.scenario;
  return std::make_shared<const StepCost>(price_step(scenario, context.kernels(scenario.plan.dtype),
                                                     context.collectives(routed.scenario.plan),
                                                     layout.shapes, routed.loads.get()));
}

std::string shortfall_text(const MemoryReport& memory) {
  constexpr std::size_t named = 3;
  const StageMemory& stage = memory.stages[static_cast<std::size_t>(memory.fullest_stage())];
  std::pair<const char*, Bytes> parts[] = {{"weights", stage.weights},
                                           {"gradients", stage.gradients},
                                           {"optimizer state", stage.optimizer},
                                           {"activations", stage.activations},
                                           {"logits and buffers", stage.other}};
  std::stable_sort(std::begin(parts), std::end(parts),
                   [](auto& a, auto& b) { return a.second > b.second; });
  std::string largest;
  for (std::size_t i = 0; i < named; ++i)
    largest += (i > 0 ? ", " : "") + gigabytes_text(parts[i].second) + " " + parts[i].first;
  return "the plan does not fit: stage " + std::to_string(memory.fullest_stage()) + " needs " +
         gigabytes_text(memory.peak()) + " on each GPU (" + largest + "), but a GPU has " +
         gigabytes_text(memory.capacity) + ": " + gigabytes_text(memory.peak() - memory.capacity) +
         " too little";
}

Estimate estimate(const Scenario& scenario, Detail detail) {
  EstimateContext context{scenario.system};
  return estimate(scenario, context, detail);
}

Estimate estimate(const Scenario& given, EstimateContext& context, Detail detail) {
  const Stopwatch stopwatch;
  const Routed routed{given, context};
  const Scenario& scenario = routed.scenario;

  // A plan that cannot run gets a reason and no time.
  const MemoryReport memory = memory_of(scenario, *routed.loads);
  refuse_what_does_not_fit(scenario, memory, detail.most_memory);

  // Who is where, and who must be simulated.
  const Plan& plan = scenario.plan;
  require_host_memory(least_tasks(plan, detail.unfolded ? plan.gpus() : plan.pp),
                      detail.host_memory);
  const Placement placement{scenario.plan, scenario.system};
  Topology topology = Topology::build(scenario.system, scenario.plan.gpus());
  const Layout layout = lay_out(scenario.system, placement, topology, detail.unfolded);

  // What everything costs by itself: passes, and what travels between them.
  const auto cost = price(routed, context, layout);
  const StepTraffic traffic{scenario, context.collectives(plan), layout.shapes};

  // The step as tasks, and the wires that they share.
  const Contraction contraction =
      detail.expanded ? Contraction{false} : choose_contraction(scenario, *cost, placement);
  const int ranks = static_cast<int>(layout.cast.roles().size());
  require_host_memory(expected_tasks(plan, ranks, *cost, contraction), detail.host_memory);
  TrainingStep step =
      build_training_step(scenario, cost, traffic, layout.cast, topology, contraction);

  Timeline timeline = execute(step.graph, topology, {detail.engine});
  Result result = summarize(scenario, memory, step, timeline, topology,
                            context.price_errors(scenario), *routed.loads);
  require_sound(result);
  result.simulation_wall = stopwatch.passed();
  return {std::move(result), std::move(step), std::move(timeline), std::move(topology)};
}

namespace {

// Steps that differ in the number of their micro-batches alone.
class StepsOfAnyLength {
 public:
  StepsOfAnyLength(const Scenario& scenario, EstimateContext& context)
      : routed_{scenario, context},
        context_{context},
        layout_{context.layout(Placement{routed_.scenario.plan, scenario.system})},
        topology_{context.topology(scenario.plan.gpus())},
        cost_{price(routed_, context, layout_)},
        contraction_{choose_contraction(routed_.scenario, *cost_, layout_.cast.placement())} {
    contraction_.chains = true;
  }

  Seconds whole() const { return step_time(routed_.scenario, run(routed_.scenario)); }

  std::optional<Seconds> from_excerpt() const {
    if (!routed_.loads->even()) return std::nullopt;
    const Plan& plan = routed_.scenario.plan;
    for (const Excerpt& excerpt : excerpts(plan)) {
      Scenario part = routed_.scenario;
      part.plan.gbs = plan.gbs / plan.microbatches * excerpt.microbatches;
      part.plan.microbatches = excerpt.microbatches;
      const Run run = this->run(part);
      const auto added = added_by_the_rest(run.step, run.timeline, plan, excerpt);
      if (added) return step_time(part, run) + *added;
    }
    return std::nullopt;
  }

 private:
  struct Run {
    TrainingStep step;
    Timeline timeline;
  };

  static Seconds step_time(const Scenario& scenario, const Run& run) {
    return step_window(scenario, run.step, run.timeline).length();
  }

  Run run(const Scenario& scenario) const {
    const StepTraffic traffic{scenario, context_.collectives(scenario.plan), layout_.shapes};
    TrainingStep step =
        build_training_step(scenario, cost_, traffic, layout_.cast, topology_, contraction_);
    Timeline timeline = execute(step.graph, topology_);
    return {std::move(step), std::move(timeline)};
  }

  const Routed routed_;
  EstimateContext& context_;
  const Layout& layout_;
  const Topology& topology_;
  std::shared_ptr<const StepCost> cost_;
  Contraction contraction_;
};

}  // namespace

std::optional<Seconds> step_time_from_excerpt(const Scenario& scenario, EstimateContext& context) {
  return StepsOfAnyLength{scenario, context}.from_excerpt();
}

Seconds step_time(const Scenario& scenario, EstimateContext& context) {
  const StepsOfAnyLength steps{scenario, context};
  const auto told = steps.from_excerpt();
  const Seconds time = told ? *told : steps.whole();
  require_sound(time);
  return time;
}

}  // namespace orrery
