#include "sim/search/known_pass_times.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace orrery {
namespace {

// Some 100 MB. Those of a dense model's plans are fewer; of models with experts they come again
// soon or not at all.
constexpr std::size_t most_known = 200'000;

// The plan with what makes no difference to its passes taken out.
Plan as_priced(Plan plan) {
  plan.zero = 0;
  plan.dp_overlap = false;
  if (plan.schedule->wraps()) plan.schedule = &usual_schedule(1);
  plan.gbs = plan.microbatches = 1;
  return plan;
}

// The plan with what makes no difference to its layers taken out as well (LayerLengths).
Plan as_layers(Plan plan) {
  plan = as_priced(std::move(plan));
  plan.schedule = &usual_schedule(1);
  plan.pp = plan.vpp = plan.dp = 1;
  return plan;
}

bool alike_inside_passes(const GroupShapes& one, const GroupShapes& other) {
  return std::all_of(std::begin(all_group_kinds), std::end(all_group_kinds), [&](GroupKind kind) {
    return !is_inside_passes(kind) || one[kind] == other[kind];
  });
}

}  // namespace

std::size_t KnownPassTimes::Hash::operator()(const Plan& plan) const {
  std::uint64_t sum = 14695981039346656037u;  // FNV-1a.
  for (const std::int64_t part :
       {std::int64_t{plan.tp}, std::int64_t{plan.pp}, std::int64_t{plan.vpp}, std::int64_t{plan.cp},
        std::int64_t{plan.dp}, std::int64_t{plan.ep}, std::int64_t{plan.etp}, plan.mbs,
        static_cast<std::int64_t>(plan.recompute.kind),
        std::int64_t{plan.sp} + 2 * std::int64_t{plan.tp_overlap()}})
    sum = (sum ^ static_cast<std::uint64_t>(part)) * 1099511628211u;
  return sum;
}

const PassPlaces& KnownPassTimes::places_of(const Scenario& scenario) {
  const Placement placement{scenario.plan, scenario.system};
  if (const auto found = places_.find(placement); found != places_.end()) return found->second;
  return places_.emplace(placement, PassPlaces{scenario}).first->second;
}

const LayerLengths& KnownPassTimes::layers_of(const Scenario& scenario, const PassPlaces& places) {
  std::vector<Layers>& of_plan = layers_[as_layers(scenario.plan)];
  const auto found = std::find_if(of_plan.begin(), of_plan.end(), [&](const Layers& layers) {
    return alike_inside_passes(layers.shapes, places.shapes);
  });
  if (found != of_plan.end()) return found->lengths;
  of_plan.push_back({places.shapes, price_layers(scenario, context_.kernels(scenario.plan.dtype),
                                                 context_.collectives(scenario.plan), places.shapes,
                                                 places.speed)});
  return of_plan.back().lengths;
}

const PassTimes& KnownPassTimes::of(const Scenario& scenario) {
  Plan key = as_priced(scenario.plan);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  if (known_.size() >= most_known) known_.clear();
  Scenario priced = scenario;
  priced.plan.zero = 0;
  const PassPlaces& places = places_of(priced);
  PassTimes times =
      pass_times(priced, context_.kernels(priced.plan.dtype), places, layers_of(priced, places));
  return known_.emplace(std::move(key), std::move(times)).first->second;
}

Seconds KnownPassTimes::bound(const Scenario& scenario) {
  return step_lower_bound(scenario, of(scenario), context_.collectives(scenario.plan));
}

std::optional<Seconds> KnownPassTimes::routed_bound(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  if (plan.ep_overlap || plan.copies() > 1 || context_.loads(scenario)->even()) return std::nullopt;
  Plan key = as_priced(plan);
  key.gbs = plan.gbs;  // As many micro-batches are drawn.
  key.microbatches = plan.microbatches;
  auto known = routed_.find(key);
  if (known == routed_.end()) {
    if (routed_.size() >= most_known) routed_.clear();
    known = routed_.emplace(std::move(key), routed_pass_times(scenario, context_)).first;
  }
  return step_lower_bound(scenario, known->second, context_.collectives(plan));
}

}  // namespace orrery
