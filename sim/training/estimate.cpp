#include "sim/training/estimate.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "sim/core/number_text.hpp"
#include "sim/core/progress.hpp"
#include "sim/engine/simulation.hpp"
#include "sim/layers/memory.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/training/context.hpp"
#include "sim/training/result.hpp"
#include "sim/training/steady_state.hpp"
#include "sim/training/step_parts.hpp"
#include "sim/training/waiting.hpp"

namespace orrery {
namespace {

void refuse_what_does_not_fit(const Scenario& scenario, const MemoryReport& memory, double most) {
  if (!memory.host_fits()) {
    const Plan& plan = scenario.plan;
    const bool optimizer = 2.0 * memory.host_activations < memory.host;
    const bool layers = plan.offload_layers > 0;
    const std::string key = optimizer ? "offload_optimizer"
                            : layers  ? "offload_layers"
                                      : "offload_modules";
    const std::string remedy = optimizer
                                   ? "use a smaller offload_optimizer, or more GPUs with zero=1"
                               : layers ? "use a smaller offload_layers, or a smaller mbs"
                                        : "name fewer offload_modules, or use a smaller mbs";
    const std::string what = text_of_host(plan);
    fail_infeasible({"", key},
                    "the plan does not fit: " + what +
                        (what.ends_with("activations") ? " take " : " takes ") +
                        gigabytes_text(memory.host) + " of a node's host, which has " +
                        gigabytes_text(memory.host_capacity),
                    remedy);
  }
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

  // A plan that cannot run is refused before anything is simulated.
  const MemoryReport memory = memory_of(scenario, *routed.loads);
  refuse_what_does_not_fit(scenario, memory, detail.most_memory);

  // Placement of ranks, and the classes of ranks to simulate.
  const Plan& plan = scenario.plan;
  require_host_memory(least_tasks(plan, detail.unfolded ? plan.gpus() : plan.pp),
                      detail.host_memory);
  const Placement placement{scenario.plan, scenario.system};
  Topology topology = Topology::build(scenario.system, scenario.plan.gpus());
  const Layout layout = lay_out(scenario.system, placement, topology, detail.unfolded);

  // Isolated costs of passes, and of the traffic between them.
  const auto cost = price(routed, context, layout);
  const StepTraffic traffic{scenario, context.collectives(plan), layout.shapes};

  // The step as a task graph on shared links.
  const Contraction contraction =
      detail.expanded ? Contraction{false} : choose_contraction(scenario, *cost, placement);
  const int ranks = static_cast<int>(layout.classes.reps().size());
  require_host_memory(expected_tasks(plan, ranks, *cost, contraction), detail.host_memory);
  TrainingStep step =
      build_training_step(scenario, cost, traffic, layout.classes, topology, contraction);

  Timeline timeline = execute(step.graph, topology);
  Result result = summarize(scenario, memory, step, timeline, topology,
                            context.price_errors(scenario), *routed.loads);
  require_sound(result);
  result.simulation_wall = stopwatch.passed();
  return {std::move(result), std::move(step), std::move(timeline), std::move(topology)};
}

namespace {

// Simulates steps that differ only in the number of micro-batches.
class StepsOfAnyLength {
 public:
  StepsOfAnyLength(const Scenario& scenario, EstimateContext& context)
      : routed_{scenario, context},
        context_{context},
        layout_{context.layout(Placement{routed_.scenario.plan, scenario.system})},
        topology_{context.topology(scenario.plan.gpus())},
        cost_{price(routed_, context, layout_)},
        contraction_{choose_contraction(routed_.scenario, *cost_, layout_.classes.placement())} {
    contraction_.fused = true;
  }

  Seconds whole() const {
    return with_waiting(routed_.scenario, step_time(routed_.scenario, run(routed_.scenario)));
  }

  std::optional<Seconds> from_excerpt() const {
    if (!routed_.loads->even()) return std::nullopt;
    const Plan& plan = routed_.scenario.plan;
    for (const Excerpt& excerpt : excerpts(plan)) {
      Scenario part = routed_.scenario;
      part.plan.gbs = plan.gbs / plan.microbatches * excerpt.microbatches;
      part.plan.microbatches = excerpt.microbatches;
      const Run run = this->run(part);
      const auto added = added_by_the_rest(run.step, run.timeline, plan, excerpt);
      if (added) return with_waiting(routed_.scenario, step_time(part, run) + *added);
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
        build_training_step(scenario, cost_, traffic, layout_.classes, topology_, contraction_);
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
  const auto extrapolated = steps.from_excerpt();
  const Seconds time = extrapolated ? *extrapolated : steps.whole();
  require_sound(time);
  return time;
}

namespace {

struct Change {
  std::string words;
  std::function<void(PlanRequest&)> apply;
  int times_gpus = 1;
};

// Possible changes, ordered by the time that they usually cost.
std::vector<Change> changes(const Plan& plan) {
  std::vector<Change> list;
  if (plan.zero == 0 && plan.data_ranks() > 1)
    list.push_back({"use --zero 1", [](PlanRequest& r) { r.zero = 1; }});
  if (plan.zero < 3 && plan.data_ranks() > 1 && plan.pp == 1)
    list.push_back({"use --zero 3", [](PlanRequest& r) { r.zero = 3; }});
  if (!plan.sp && plan.tp > 1)
    list.push_back({"use --sp true", [](PlanRequest& r) { r.sp = true; }});
  if (plan.recompute.kind == Recompute::none)
    list.push_back(
        {"use --recompute selective", [](PlanRequest& r) { r.recompute = Recompute::selective; }});
  for (std::int64_t mbs = plan.mbs / 2; mbs >= 1; mbs /= 2)
    list.push_back({"use --mbs " + std::to_string(mbs), [mbs](PlanRequest& r) { r.mbs = mbs; }});
  if (plan.recompute.kind != Recompute::full)
    list.push_back({"use --recompute full", [](PlanRequest& r) { r.recompute = Recompute::full; }});
  for (int factor : {2, 4, 8, 16, 32}) {
    list.push_back({"use --pp " + std::to_string(plan.pp * factor),
                    [factor](PlanRequest& r) { r.pp *= factor; }});
    list.push_back({"use --tp " + std::to_string(plan.tp * factor),
                    [factor](PlanRequest& r) { r.tp *= factor; }});
    list.push_back({"use --pp " + std::to_string(plan.pp * factor) + " --recompute full",
                    [factor](PlanRequest& r) { r.pp *= factor, r.recompute = Recompute::full; }});
    list.push_back({"use --tp " + std::to_string(plan.tp * factor) + " --recompute full",
                    [factor](PlanRequest& r) { r.tp *= factor, r.recompute = Recompute::full; }});
  }
  for (int factor : {2, 4, 8, 16, 32, 64})
    for (bool full : {false, true})
      list.push_back({"use --gpus " + std::to_string(plan.gpus() * factor) + " --pp " +
                          std::to_string(plan.pp * factor) + (full ? " --recompute full" : ""),
                      [factor, full](PlanRequest& r) {
                        r.pp *= factor;
                        if (full) r.recompute = Recompute::full;
                      },
                      factor});
  return list;
}

}  // namespace

std::string nearest_fit(const Scenario& scenario) {
  for (const Change& change : changes(scenario.plan)) {
    PlanRequest request = plan_again(scenario.plan);
    change.apply(request);
    try {
      const Scenario changed =
          make_scenario(scenario, request, scenario.plan.gpus() * change.times_gpus, {});
      if (least_memory_of(changed).fits() && memory_of(changed).fits()) return change.words;
    } catch (const Error&) {
      // The changed plan does not divide the model or the GPUs.
    }
  }
  return "";
}

namespace {

// Measured peak memory of the process per task, with timeline, labels and flows: 240 to 310 bytes
// in steps of 0.8 to 16 million tasks, with one rank and 2,048, contracted and expanded.
constexpr Bytes of_a_task{300.0};

double passes(const Plan& plan) {
  const double kinds = plan.splits_backward() ? 3.0 : 2.0;
  return kinds * plan.microbatches_of_chunk() * plan.chunks();
}

}  // namespace

double least_tasks(const Plan& plan, int ranks) { return passes(plan) * ranks; }

double expected_tasks(const Plan& plan, int ranks, const StepCost& cost,
                      const Contraction& contraction) {
  const double least = least_tasks(plan, ranks);
  const double stages = static_cast<double>(cost.stages.size());
  // All stages but the last send forward, all but the first backward.
  const double transfers =
      2.0 * plan.microbatches_of_chunk() * plan.chunks() * ranks * (stages - 1.0) / stages;
  if (contraction.quiet && contraction.overlapped) return least + transfers;
  double in_both = 0.0;  // Mean over virtual stages.
  for (const StageCost& stage : cost.stages)
    in_both +=
        static_cast<double>(tasks_in(stage.forward.segments) + tasks_in(stage.backward.segments));
  in_both /= stages;
  if (!contraction.quiet) return least * in_both / 2.0 + transfers;
  // The first forward and the last backward pass of each chunk are expanded.
  return least + transfers + in_both * plan.chunks() * ranks;
}

void require_host_memory(double tasks, Bytes most) {
  const Bytes needed = tasks * of_a_task;
  if (most <= Bytes{} || needed <= most) return;
  fail_infeasible({},
                  "a simulation of about " + std::to_string(std::llround(tasks / 1e6)) +
                      " million" + " tasks needs some " + gigabytes_text(needed) +
                      " of this machine's memory, and may take " + gigabytes_text(most),
                  "simulate fewer ranks (without --unfolded and --expanded) or micro-batches, or "
                  "say --host-memory '" +
                      gigabytes_text(1.2 * needed) + "'");
}

}  // namespace orrery
