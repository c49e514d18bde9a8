#include "sim/search/single_changes.hpp"

#include <algorithm>

#include "sim/core/number_text.hpp"
#include "sim/core/progress.hpp"
#include "sim/core/table.hpp"
#include "sim/layers/memory.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/search/dimension.hpp"
#include "sim/training/result_items.hpp"

namespace orrery {
namespace {

// A degree or a micro-batch has its half and its double as neighbours, all other keys, chunks among
// them, every other value.
bool is_neighbour(const PlanDimension& dimension, const std::string& value, const Plan& plan) {
  if (dimension.kind != PlanDimension::Kind::degree && dimension.key != "mbs") return true;
  const auto now = std::get<std::int64_t>(plan_key(dimension.key).access.value(plan));
  const std::int64_t number = std::stoll(value);
  return number == 2 * now || 2 * number == now;
}

// Chunks need their schedule, and stages without chunks another one; weights in shards alone are
// gathered again.
void settle(PlanRequest& request, const std::string& key, const std::string& value) {
  if (key == "vpp") request.schedule.reset();
  if (key == "vpp" && value == "1") request.vpp.reset();
  if (key == "schedule") request.vpp.reset();
  if (key == "pp" && value == "1") request.schedule.reset(), request.vpp.reset();
  if (key == "pp" || key == "vpp" || key == "schedule") request.layers = {};
  if (key == "zero" && value != "3") request.reshard.reset();
}

// The change in words that replace those of the plan: with the schedule and the chunks that come
// of it.
std::string flags_of(const PlanDimension& dimension, const std::string& value, const Plan& before,
                     const Plan& after) {
  std::string flags = "--" + dimension.key + " " + value;
  if (dimension.key != "vpp" && after.vpp != before.vpp)
    flags += " --vpp " + std::to_string(after.vpp);
  const PlanKey& schedule = plan_key("schedule");
  if (dimension.key != schedule.name && after.schedule != before.schedule)
    flags += " --schedule " + schedule.text(after);
  return flags;
}

}  // namespace

std::vector<SingleChange> single_changes(const Result& plan, EstimateContext& context,
                                         Detail detail) {
  const Scenario& scenario = plan.scenario;
  std::vector<PlanDimension> dimensions =
      plan_dimensions(scenario.model, scenario.plan.gpus(), scenario.plan.gbs);
  keep_supported(dimensions, {scenario.software});
  PlanDimension splits{"layers", {}};
  for (const StageLayers& split : neighbour_splits(scenario))
    splits.values.push_back(stage_layers_text(split));
  dimensions.push_back(splits);
  std::vector<SingleChange> changes;
  for (const PlanDimension& dimension : dimensions) {
    const auto tried = static_cast<std::size_t>(&dimension - dimensions.data());
    ProgressListener::report({Progress::Of::keys, tried, dimensions.size()});
    if (!dimension.varies(scenario.plan)) continue;
    std::optional<SingleChange> best;
    for (const std::string& value : dimension.values) {
      if (!is_neighbour(dimension, value, scenario.plan)) continue;
      try {
        PlanRequest request = plan_again(scenario.plan);
        set_plan_flag(request, dimension.key, value);
        settle(request, dimension.key, value);
        const Scenario changed = make_scenario(scenario, request, scenario.plan.gpus(), {});
        if (changed.plan == scenario.plan) continue;
        const MemoryReport memory = memory_of(changed, *context.loads(changed));
        if (memory.peak() > safe_share_of_memory * memory.capacity) continue;
        const Result result = estimate(changed, context, detail).result;
        if (result.step_time >= (best ? best->step : plan.step_time)) continue;
        best =
            SingleChange{flags_of(dimension, value, scenario.plan, changed.plan), result.step_time,
                         difference(plan.range, result.range), plan.critical.parts};
        best->gain.add(result.critical.parts, -1.0);
      } catch (const Error&) {
        // Does not divide, or is not to be had together: no change.
      }
    }
    if (best) changes.push_back(*best);
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const SingleChange& a, const SingleChange& b) { return a.step < b.step; });
  return changes;
}

namespace {

// "tensor parallel -4.0 %": the part of the critical path that gains the most, of the step before.
std::string largest_gain(const SingleChange& change, Seconds before) {
  std::size_t most = 0;
  const auto gain = [&](std::size_t part) { return change.gain.sum(static_cast<StepPart>(part)); };
  for (std::size_t part = 1; part < step_part_count; ++part)
    if (gain(part) > gain(most)) most = part;
  return title(static_cast<StepPart>(most)) + " " + percent(-1.0 * (gain(most) / before));
}

}  // namespace

std::string changes_text(const std::vector<SingleChange>& changes) {
  if (changes.empty())
    return "No single change of the plan shortens its step; orrery search tries several "
           "together.\n";
  Table table{{{"change", Align::left},
               {"step"},
               {"change"},
               {"", Align::left},
               {"largest part", Align::left}}};
  bool ties = false;
  for (const SingleChange& change : changes) {
    const Seconds before = change.step - change.difference.mean;
    const bool tie = change.difference.is_tie();
    ties = ties || tie;
    table.add_row({change.flags, duration_text(change.step),
                   percent(change.difference.mean / before), tie ? "=" : "",
                   largest_gain(change, before)});
  }
  return "One change of the plan at a time that shortens its step, the best of each key\n" +
         table.text() +
         (ties ? "= marks gains that are not significant (90 % confidence).\n" : "") +
         "orrery search tries several together.\n";
}

}  // namespace orrery
