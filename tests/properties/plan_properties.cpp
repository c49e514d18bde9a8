#include "tests/properties/plan_properties.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>

#include "sim/layers/memory.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery {
namespace {

using Broken = std::optional<std::string>;

// NCCL chooses algorithms by a model of its own, which is wrong here and there by some percent, and
// waves of thread blocks make a larger product a little more efficient than a smaller one.
constexpr double slack = 0.05;

std::string seconds(Seconds time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g s", time.si());
  return text;
}

Broken not_equal(Seconds one, Seconds other, double tolerance, const std::string& what) {
  if (std::abs(one / other - 1.0) <= tolerance) return std::nullopt;
  return what + ": " + seconds(one) + " and " + seconds(other);
}

Broken not_at_least(Seconds longer, Seconds shorter, const std::string& what, double much = slack) {
  if (longer >= (1.0 - much) * shorter) return std::nullopt;
  return what + ": " + seconds(longer) + " after " + seconds(shorter);
}

// Reading what estimates on one system share takes longer than simulating most of these plans.
// `variation`: the change of the system. `uses`: the data is read anew after so many.
EstimateContext& context_of(const System& system, const std::string& variation = "",
                            int uses = 2000) {
  struct Shared {
    std::unique_ptr<EstimateContext> context;
    int uses = 0;
  };
  static std::map<std::pair<std::string, std::string>, Shared> known;
  Shared& shared = known[{system.name, variation}];
  // Contexts keep the wires of every placement that was asked for.
  if (shared.uses++ % uses == 0) shared.context = std::make_unique<EstimateContext>(system);
  return *shared.context;
}

// The step, if that is a plan and fits.
std::optional<Result> answer_to(const std::optional<Scenario>& scenario, Detail detail = {},
                                const std::string& variation = "") {
  if (!scenario) return std::nullopt;
  try {
    return estimate(*scenario, context_of(scenario->system, variation), detail).result;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// `variation` names the change, of which there is one.
template <class Change>
std::optional<Result> on_another_machine(const PlanCase& plan, const std::string& variation,
                                         Change change) {
  static std::map<std::pair<std::string, std::string>, System> known;
  auto found = known.find({plan.system, variation});
  if (found == known.end()) {
    found = known.emplace(std::pair{plan.system, variation}, plan.machine()).first;
    change(found->second);
  }
  return answer_to(plan.scenario(plan.make_model(), found->second), {}, variation);
}

template <class Change>
std::optional<Result> of_another_model(const PlanCase& plan, Change change) {
  Model model = plan.make_model();
  change(model);
  return answer_to(plan.scenario(model, plan.machine()));
}

// The software must be the same: another one, chosen where the first cannot run the other plan,
// keeps other tensors.
template <class Change>
std::optional<Result> of_another_plan(const PlanCase& plan, const Estimate& before, Change change) {
  PlanCase other = plan;
  change(other);
  const std::optional<Scenario> scenario = other.scenario();
  if (!scenario || scenario->software.name != before.result.scenario.software.name)
    return std::nullopt;
  return answer_to(scenario);
}

// Uneven routing draws anew for every shape: two draws are not to be compared.
bool is_even(const PlanCase& plan) { return !plan.keys.contains("routing"); }

// NCCL knows the NICs and not the cables between switches: where these are what is narrow, it may
// choose for wider NICs what is slower. Of one algorithm no step is.
Broken wider_network(const PlanCase& plan, const Estimate& answer) {
  const auto held = [](const PlanCase& of, Seconds step) -> Broken {
    const auto other = on_another_machine(of, "NICs", [](System& s) { s.nic = 2.0 * s.nic; });
    if (!other) return std::nullopt;
    return not_at_least(step, other->step_time, "NICs of twice the rate");
  };
  const Broken broken = held(plan, answer.result.step_time);
  if (!broken || plan.keys.contains("nccl_algo")) return broken;
  PlanCase of_rings = plan;
  of_rings.keys["nccl_algo"] = "Ring";
  const auto rings = answer_to(of_rings.scenario());
  return rings ? held(of_rings, rings->step_time) : broken;
}

// Measurements on NVLink at a GPU's own rate apply to no other rate: both times are calculated.
Broken wider_nvlink(const PlanCase& plan, const Estimate&) {
  const auto times = [&](double factor) {
    return on_another_machine(plan, "NVLink " + std::to_string(factor),
                              [=](System& s) { s.scale_up = factor * s.scale_up; });
  };
  const auto narrow = times(1.001);
  const auto wide = times(2.0);
  if (!narrow || !wide) return std::nullopt;
  return not_at_least(narrow->step_time, wide->step_time, "NVLink of twice the rate");
}

Broken slower_latency(const PlanCase& plan, const Estimate& answer) {
  const auto other = on_another_machine(plan, "latency", [](System& s) {
    s.network_latency = 2.0 * s.network_latency;
    s.scale_up_latency = 2.0 * s.scale_up_latency;
  });
  if (!other) return std::nullopt;
  return not_at_least(other->step_time, answer.result.step_time, "twice the latency");
}

// Shorter kernels may bring a stage's transfers to both neighbours onto its NIC at once: what they
// then wait for each other is no fault of the kernels.
Seconds met_with_shorter_kernels(const Result& shorter, const Result& longer) {
  const auto transfers = [](const Result& result) {
    return result.critical.parts.sum(StepPart::pipeline);
  };
  return std::max(Seconds{}, transfers(shorter) - transfers(longer));
}

Broken faster_memory(const PlanCase& plan, const Estimate& answer) {
  const auto other = on_another_machine(plan, "memory's rate", [](System& s) {
    s.gpu.memory_bandwidth = 2.0 * s.gpu.memory_bandwidth;
  });
  if (!other) return std::nullopt;
  const Seconds met = met_with_shorter_kernels(*other, answer.result);
  return not_at_least(answer.result.step_time + met, other->step_time, "memory of twice the rate");
}

Broken larger_memory(const PlanCase& plan, const Estimate& answer) {
  const auto other =
      on_another_machine(plan, "memory", [](System& s) { s.gpu.memory = 2.0 * s.gpu.memory; });
  if (!other) return "a plan does not fit in twice the memory";
  // Links are numbered as they are first used, and sums in another order may end a tick apart.
  return not_equal(answer.result.step_time, other->step_time, 1e-10, "twice the memory");
}

Broken longer_sequence(const PlanCase& plan, const Estimate& answer) {
  if (!is_even(plan)) return std::nullopt;
  const auto other = of_another_plan(plan, answer, [](PlanCase& c) { c.seq *= 2; });
  if (!other) return std::nullopt;
  return not_at_least(other->step_time, answer.result.step_time, "twice the sequence");
}

Broken larger_batch(const PlanCase& plan, const Estimate& answer) {
  if (!is_even(plan) || !plan.keys.contains("mbs")) return std::nullopt;
  const auto other = of_another_plan(plan, answer, [](PlanCase& c) { c.batch *= 2; });
  if (!other) return std::nullopt;
  return not_at_least(other->step_time, answer.result.step_time, "twice the batch");
}

// Gradients and weights that overlap the passes go in buckets of a least size: larger ones may fill
// one more, so that they come sooner and meet other traffic elsewhere. Those are other steps.
bool has_other_buckets(const Result& one, const Result& other) {
  return one.scenario.plan.dp_overlap && one.tasks != other.tasks;
}

Broken more_layers(const PlanCase& plan, const Estimate& answer) {
  if (!plan.model.empty() || !is_even(plan)) return std::nullopt;
  const auto other = of_another_plan(plan, answer, [](PlanCase& c) { c.layers *= 2; });
  if (!other) return std::nullopt;
  return not_at_least(other->step_time, answer.result.step_time, "twice the layers");
}

Broken larger_vocabulary(const PlanCase& plan, const Estimate& answer) {
  const auto other = of_another_model(plan, [](Model& m) { m.vocab *= 2; });
  if (!other || has_other_buckets(*other, answer.result)) return std::nullopt;
  const Seconds met = met_with_shorter_kernels(answer.result, *other);
  return not_at_least(other->step_time + met, answer.result.step_time, "twice the vocabulary");
}

Broken wider_mlp(const PlanCase& plan, const Estimate& answer) {
  if (!is_even(plan)) return std::nullopt;
  const auto other = of_another_model(plan, [](Model& m) {
    m.ffn *= 2;
    if (m.experts) m.experts->ffn *= 2;
  });
  if (!other || has_other_buckets(*other, answer.result)) return std::nullopt;
  const Seconds met = met_with_shorter_kernels(answer.result, *other);
  return not_at_least(other->step_time + met, answer.result.step_time,
                      "twice the width of the MLP");
}

Broken more_experts_a_token(const PlanCase& plan, const Estimate& answer) {
  if (plan.experts < 2 * plan.per_token || !is_even(plan)) return std::nullopt;
  const auto other = of_another_plan(plan, answer, [](PlanCase& c) { c.per_token *= 2; });
  if (!other) return std::nullopt;
  return not_at_least(other->step_time, answer.result.step_time, "twice the experts of a token");
}

Broken recomputation(const PlanCase& plan, const Estimate& answer) {
  if (answer.result.scenario.plan.recompute.kind != Recompute::none) return std::nullopt;
  const auto other =
      of_another_plan(plan, answer, [](PlanCase& c) { c.keys["recompute"] = "full"; });
  if (!other) return std::nullopt;
  // One layer that is recomputed is held whole in addition to its input.
  if (answer.result.scenario.model.layers < 3 * answer.result.scenario.plan.virtual_stages())
    return std::nullopt;
  if (const Broken broken =
          not_at_least(other->step_time, answer.result.step_time, "full recomputation"))
    return broken;
  if (other->memory.peak() <= answer.result.memory.peak()) return std::nullopt;
  return "full recomputation needs more memory";
}

Broken sharded_optimizer(const PlanCase& plan, const Estimate& answer) {
  if (answer.result.scenario.plan.zero != 0) return std::nullopt;
  const auto other = of_another_plan(plan, answer, [](PlanCase& c) { c.keys["zero"] = "1"; });
  if (!other || other->memory.peak() <= answer.result.memory.peak()) return std::nullopt;
  return "ZeRO-1 needs more memory";
}

// Two replicas for each, and twice the batch: nothing gets faster. Of whole nodes, as two GPUs of
// one may have fewer links in common than four; in a mesh these are neighbours of any plan. And
// where NVLink is narrower than a node's NICs, a ring through them is a little faster than one
// inside of a node, all of whose hops are NVLink's.
Broken weak_scaling(const PlanCase& plan, const Estimate& answer) {
  const System& system = answer.result.scenario.system;
  if (system.scale_up < static_cast<double>(system.nics_per_node) * system.nic) return std::nullopt;
  if (!is_even(plan) || plan.keys.contains("ep") || plan.gpus < 8 || plan.gpus >= 64 ||
      answer.result.scenario.system.wiring == NodeWiring::nvlink_mesh)
    return std::nullopt;
  const auto other = of_another_plan(plan, answer, [](PlanCase& c) { c.gpus *= 2, c.batch *= 2; });
  if (!other || other->scenario.plan.mbs != answer.result.scenario.plan.mbs ||
      other->scenario.plan.zero != 0 || other->scenario.plan.pp != answer.result.scenario.plan.pp)
    return std::nullopt;
  return not_at_least(other->step_time, answer.result.step_time, "twice the replicas");
}

Broken from_the_steady_state(const PlanCase&, const Estimate& answer) {
  const Scenario& scenario = answer.result.scenario;
  return not_equal(step_time(scenario, context_of(scenario.system)), answer.result.step_time, 1e-3,
                   "as a search computes it");
}

// Two steps may differ in their last tick alone.
std::string exact(Seconds time) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g s", time.si());
  return text;
}

Broken repeated(const PlanCase& plan, const Estimate& answer) {
  // The data was read for this plan and few others, where thousands shared it before.
  constexpr int others = 30;
  const Scenario scenario = plan.scenario_as_read();
  const Result other = estimate(scenario, context_of(scenario.system, "again", others)).result;
  if (other.step_time == answer.result.step_time &&
      other.memory.peak() == answer.result.memory.peak())
    return std::nullopt;
  return "repeated: " + exact(other.step_time) + " and " + exact(answer.result.step_time);
}

Broken memory_by_itself(const PlanCase& plan, const Estimate& answer) {
  const Scenario scenario = *plan.scenario();
  const Bytes alone = memory_of(scenario).peak();
  if (alone != answer.result.memory.peak()) return "memory by itself is not the estimate's";
  if (least_memory_of(scenario).peak() > alone) return "less than its least memory";
  return std::nullopt;
}

Broken every_rank(const PlanCase& plan, const Estimate& answer) {
  // Some ten kernels and collectives a layer, where folded steps draw a pass as one task.
  const Plan& of = answer.result.scenario.plan;
  constexpr double most_expanded = 50'000;
  const double expanded_tasks = 2.0 * 10.0 * answer.result.scenario.model.layers / of.pp *
                                static_cast<double>(of.microbatches) * plan.gpus;
  if (expanded_tasks > most_expanded) return std::nullopt;
  const auto other = answer_to(plan.scenario(), {.unfolded = true, .expanded = true});
  if (!other) return "refused unfolded";
  return not_equal(other->step_time, answer.result.step_time, 1e-3, "every rank and collective");
}

Broken other_engine(const PlanCase& plan, const Estimate& answer) {
  if (answer.result.tasks > 5000) return std::nullopt;
  const SimulatorChoice simgrid{Simulator::simgrid};
  const auto other = answer_to(plan.scenario(), {});
  if (!other) return "refused by SimGrid";
  // A hundredth of a nanosecond for each flow on the path, of which there are a few thousand, and
  // what becomes of it where a flow then meets another for longer.
  if (std::abs((other->step_time - answer.result.step_time).si()) < 5e-7) return std::nullopt;
  return not_equal(other->step_time, answer.result.step_time, 1e-7, "SimGrid");
}

}  // namespace

std::optional<Estimate> answer_of(const Scenario& scenario, bool with_remedy) {
  EstimateContext& context = context_of(scenario.system);
  if (!with_remedy && !memory_of(scenario, *context.loads(scenario)).fits()) return std::nullopt;
  // At 300 bytes a task. One plan in fifty is larger, up to a thousand times so, and these would
  // take longer than all others.
  constexpr Bytes most{5'000 * 300.0};
  try {
    return estimate(scenario, context, {.host_memory = most});
  } catch (const Error&) {
    return std::nullopt;
  }
}

const std::vector<Property>& plan_properties() {
  static const std::vector<Property> all{{"repeated", repeated},
                                         {"memory by itself", memory_by_itself},
                                         {"steady state", from_the_steady_state},
                                         {"every rank", every_rank},
                                         {"SimGrid", other_engine},
                                         {"wider network", wider_network},
                                         {"wider NVLink", wider_nvlink},
                                         {"latency", slower_latency},
                                         {"faster memory", faster_memory},
                                         {"larger memory", larger_memory},
                                         {"longer sequence", longer_sequence},
                                         {"larger batch", larger_batch},
                                         {"more layers", more_layers},
                                         {"larger vocabulary", larger_vocabulary},
                                         {"wider MLP", wider_mlp},
                                         {"more experts a token", more_experts_a_token},
                                         {"recomputation", recomputation},
                                         {"sharded optimizer", sharded_optimizer},
                                         {"weak scaling", weak_scaling}};
  return all;
}

}  // namespace orrery
