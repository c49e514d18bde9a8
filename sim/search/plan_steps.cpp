#include "sim/search/plan_steps.hpp"

#include "sim/layers/memory.hpp"
#include "sim/plan/plan_keys.hpp"

namespace orrery {
namespace {

std::optional<Seconds> step_of(const Scenario& scenario, EstimateContext& context) {
  if (!memory_of(scenario).fits()) return std::nullopt;
  return estimate(scenario, context).result.step_time;
}

// A plan that cannot be, or not in this memory, is none on the way.
std::optional<PlanStep> plan_step(const Scenario& like, const PlanRequest& request,
                                  EstimateContext& context) {
  try {
    PlanStep step{
        {}, make_scenario(like.model, like.system, request, like.plan.gpus(), {}), std::nullopt};
    step.step = step_of(step.scenario, context);
    if (step.step) return step;
  } catch (const Error&) {
    // The next key may make it one.
  }
  return std::nullopt;
}

std::vector<const PlanKey*> changed_keys(const Plan& before, const Plan& after) {
  std::vector<const PlanKey*> changed;
  for (const PlanKey& key : plan_keys()) {
    if (key.name == "dp") continue;  // It follows.
    const bool exists = key.has_value(before) || key.has_value(after);
    if (exists && key.text(before) != key.text(after)) changed.push_back(&key);
  }
  return changed;
}

}  // namespace

std::vector<PlanStep> plan_steps(const Scenario& before, const Scenario& after,
                                 EstimateContext& context) {
  std::vector<PlanStep> steps{{{}, before, step_of(before, context)}};
  PlanRequest request = plan_again(before.plan);
  std::vector<std::string> together;
  for (const PlanKey* key : changed_keys(before.plan, after.plan)) {
    key->access.ask_again(request, after.plan);
    if (key->text(steps.back().scenario.plan) == key->text(after.plan)) continue;  // By itself.
    together.push_back(key->name);
    std::optional<PlanStep> step = plan_step(after, request, context);
    if (!step) continue;
    step->keys = std::exchange(together, {});
    steps.push_back(std::move(*step));
  }
  if (steps.back().scenario.plan != after.plan)
    steps.push_back({std::move(together), after, step_of(after, context)});
  return steps;
}

}  // namespace orrery
