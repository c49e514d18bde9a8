#include "sim/search/plan_space.hpp"

#include <algorithm>
#include <cassert>

#include "sim/core/value_list.hpp"
#include "sim/layers/memory.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/plan/software_keys.hpp"

namespace orrery {

struct PlanSpace::Visit {
  const Visitor& visitor;
  PlanRefusal& refusal;
  Choice choice;
  std::vector<Plan> seen;  // All have one shape.
  bool groups = false;     // One plan of each group is enough.
  Shard shard = {};
  std::int64_t shapes = 0;  // Counted so far, those of other shards too.
};

namespace {

// The frameworks of a search's plans: the fixed ones, or the defaults of each fixed format.
std::vector<std::string> software_names(const System& system, const std::vector<Fixed>& fixed) {
  std::vector<std::string> formats;
  for (const Fixed& one : fixed) {
    if (one.key == "software") return one.values;
    if (one.key == "dtype") formats = one.values;
  }
  PlanRequest request;
  if (formats.empty()) return {default_software(request, system)};
  std::vector<std::string> names;
  for (const std::string& format : formats) {
    set_plan_flag(request, "dtype", format);
    names.push_back(default_software(request, system));
  }
  return names;
}

// The nearest software that has some value of every fixed key, if none is fixed and the default
// lacks all values of one: it is then fixed as well. `why`: the key.
std::vector<Fixed> with_software(const System& system, std::vector<Fixed> fixed, std::string& why) {
  const std::vector<std::string> names = software_names(system, fixed);
  const auto is_software = [](const Fixed& one) { return one.key == "software"; };
  if (names.size() != 1 || std::any_of(fixed.begin(), fixed.end(), is_software)) return fixed;
  const Software usual = read_software(names.front(), {"--fix software", ""});
  const auto lacks = [](const Software& software, const Fixed& one) {
    return std::none_of(one.values.begin(), one.values.end(), [&](const std::string& value) {
      return supports(software, one.key, value);
    });
  };
  const auto lacking =
      std::find_if(fixed.begin(), fixed.end(), [&](const Fixed& one) { return lacks(usual, one); });
  if (lacking == fixed.end()) return fixed;
  for (const Software& other : software_near(usual)) {
    if (std::any_of(fixed.begin(), fixed.end(),
                    [&](const Fixed& one) { return lacks(other, one); }))
      continue;
    why = "software " + other.name + " is taken, as no software is fixed and the software '" +
          usual.name + "' has no " + lacking->key + "=" + lacking->values.front();
    fixed.push_back({"software", {other.name}});
    break;
  }
  return fixed;
}

}  // namespace

PlanSpace::PlanSpace(const Model& model, const System& system, int gpus, std::int64_t gbs,
                     const std::vector<Fixed>& fixed_by_user)
    : model_{model}, system_{system}, gpus_{gpus}, gbs_{gbs} {
  const std::vector<Fixed> fixed = with_software(system_, fixed_by_user, why_software_);
  dimensions_ = plan_dimensions(model, gpus, gbs);
  std::vector<Software> software;
  for (const std::string& name : software_names(system_, fixed)) {
    software.push_back(read_software(name, {"--fix software", ""}));
    software_.try_emplace(name, software.back());
  }
  keep_supported(dimensions_, software);
  fix(dimensions_, fixed);
  const auto switches =
      std::stable_partition(dimensions_.begin(), dimensions_.end(),
                            [](const PlanDimension& dimension) { return dimension.is_shape(); });
  shapes_ = static_cast<std::size_t>(switches - dimensions_.begin());
  assert(shapes_ >= 2 && dimensions_.size() <= most_dimensions);
  for (std::size_t i = shapes_; i < dimensions_.size(); ++i)
    if (dimensions_[i].key == "zero" || dimensions_[i].key == "dp_overlap") late_.push_back(i);
  for (const PlanDimension& dimension : dimensions_) {
    setters_.emplace_back();
    for (const std::string& value : dimension.values)
      setters_.back().push_back(
          plan_key(dimension.key).access.setter(value_of_flag(dimension.key, value)));
  }
}

double PlanSpace::configurations() const {
  double product = 1.0;
  for (const PlanDimension& dimension : dimensions_)
    product *= static_cast<double>(dimension.values.size());
  return product;
}

int PlanSpace::parts() const {
  return static_cast<int>(dimensions_[0].values.size() * dimensions_[1].values.size());
}

bool PlanSpace::visit(int part, const Visitor& visitor, PlanRefusal& refusal, Shard shard) const {
  Visit state{visitor, refusal, {}, {}};
  state.shard = shard;
  state.shapes = part;
  return visit_part(part, state);
}

bool PlanSpace::visit_groups(int part, const Visitor& visitor, PlanRefusal& refusal) const {
  Visit state{visitor, refusal, {}, {}};
  state.groups = true;
  return visit_part(part, state);
}

bool PlanSpace::visit_group(const Choice& group, const Visitor& visitor,
                            PlanRefusal& refusal) const {
  Visit state{visitor, refusal, group, {}};
  const PlanRequest so_far = request(group);
  const OrRefused<SettledPlan> shape = settle_shape(request(shape_of(group)));
  assert(std::holds_alternative<SettledPlan>(shape));  // Else its group would not have been found.
  return visit_late(state, so_far, std::get<SettledPlan>(shape).plan, 0);
}

bool PlanSpace::visit_part(int part, Visit& state) const {
  state.choice.fill(left_open);
  const auto second = static_cast<int>(dimensions_[1].values.size());
  state.choice[0] = static_cast<std::uint8_t>(part / second);
  state.choice[1] = static_cast<std::uint8_t>(part % second);
  return visit_shapes(state, request(state.choice), 2);
}

bool PlanSpace::visit_shapes(Visit& state, const PlanRequest& so_far, std::size_t dimension) const {
  PlanRequest first = so_far;
  for (std::size_t i = dimension; i < shapes_; ++i) set(first, i, 0);
  const OrRefused<SettledPlan> settled = settle_shape(first);
  const auto* no = std::get_if<Refused>(&settled);
  if (no && !may_be_mended(*no, dimension)) {
    state.refusal.take(*no, dimension);
    return true;
  }
  Plan shape;
  static_cast<PlanChoices&>(shape) = first;
  if (!no) shape = std::get<SettledPlan>(settled).plan;
  if (dimension == shapes_) {
    if (!state.shard.has(state.shapes++)) return true;
    state.seen.clear();
    return visit_switches(state, so_far, shape, dimension);
  }
  return for_each_value(state, so_far, shape, dimension, [&](const PlanRequest& next) {
    return visit_shapes(state, next, dimension + 1);
  });
}

bool PlanSpace::visit_switches(Visit& state, const PlanRequest& so_far, const Plan& shape,
                               std::size_t dimension) const {
  if (dimension == dimensions_.size())
    return state.groups ? visit_first_of_group(state, so_far, shape) : visit_plan(state, so_far);
  if (state.groups && std::find(late_.begin(), late_.end(), dimension) != late_.end())
    return visit_switches(state, so_far, shape, dimension + 1);
  return for_each_value(state, so_far, shape, dimension, [&](const PlanRequest& next) {
    return visit_switches(state, next, shape, dimension + 1);
  });
}

bool PlanSpace::visit_first_of_group(Visit& state, const PlanRequest& so_far,
                                     const Plan& shape) const {
  const Choice group = state.choice;
  bool goes_on = true;
  const Visitor first = [&](const Choice&, const Scenario& scenario) {
    goes_on = state.visitor(group, scenario);
    return false;
  };
  Visit of_group{first, state.refusal, group, {}};
  visit_late(of_group, so_far, shape, 0);
  return goes_on;
}

bool PlanSpace::visit_late(Visit& state, const PlanRequest& so_far, const Plan& shape,
                           std::size_t late) const {
  if (late == late_.size()) return visit_plan(state, so_far);
  return for_each_value(state, so_far, shape, late_[late], [&](const PlanRequest& next) {
    return visit_late(state, next, shape, late + 1);
  });
}

bool PlanSpace::visit_plan(Visit& state, const PlanRequest& so_far) const {
  const OrRefused<SettledPlan> settled = settle(so_far);
  if (const auto* no = std::get_if<Refused>(&settled)) {
    state.refusal.take(*no, dimensions_.size());
    return true;
  }
  const auto& found = std::get<SettledPlan>(settled);
  if (std::find(state.seen.begin(), state.seen.end(), found.plan) != state.seen.end()) return true;
  state.seen.push_back(found.plan);
  try {
    return state.visitor(state.choice, scenario_of(model_, system_, software_of(so_far), found));
  } catch (
      const Error& error) {  // A routing that does not fit the plan is found when it is priced.
    state.refusal.take({error.what(), dimensions_.size()});
    return true;
  }
}

template <class Go>
bool PlanSpace::for_each_value(Visit& state, const PlanRequest& so_far, const Plan& shape,
                               std::size_t dimension, const Go& go) const {
  const PlanDimension& varied = dimensions_[dimension];
  const bool varies = varied.varies(shape);
  if (!varies && !varied.fixed) return go(so_far);
  const std::size_t values = varies ? varied.values.size() : 1;
  bool goes_on = true;
  for (std::size_t value = 0; goes_on && value < values; ++value) {
    PlanRequest next = so_far;
    set(next, dimension, value);
    state.choice[dimension] = static_cast<std::uint8_t>(value);
    goes_on = go(next);
  }
  state.choice[dimension] = left_open;
  return goes_on;
}

void PlanSpace::set(PlanRequest& request, std::size_t dimension, std::size_t value) const {
  setters_[dimension][value](request);
}

PlanRequest PlanSpace::request(const Choice& choice) const {
  PlanRequest request;
  request.gbs = gbs_;
  for (std::size_t i = 0; i < dimensions_.size(); ++i)
    if (choice[i] != left_open) set(request, i, choice[i]);
  return request;
}

const Software& PlanSpace::software_of(const PlanRequest& request) const {
  if (software_.size() == 1) return software_.begin()->second;
  return software_.at(request.software.empty() ? default_software(request, system_)
                                               : request.software);
}

OrRefused<SettledPlan> PlanSpace::settle(const PlanRequest& request) const {
  return try_plan(model_, system_, software_of(request), request, gpus_);
}

OrRefused<SettledPlan> PlanSpace::settle_shape(PlanRequest request, std::uint32_t given) const {
  OrRefused<SettledPlan> settled = settle(request);
  const auto* no = std::get_if<Refused>(&settled);
  std::size_t open = no ? shapes_ : dimensions_.size();
  while (open < dimensions_.size() && (given >> open & 1 || dimensions_[open].key != no->key))
    ++open;
  if (open == dimensions_.size()) return settled;
  for (std::size_t value = 0; value < dimensions_[open].values.size(); ++value) {
    set(request, open, value);
    OrRefused<SettledPlan> mended = settle_shape(request, given | std::uint32_t{1} << open);
    if (std::holds_alternative<SettledPlan>(mended)) return mended;
  }
  return settled;
}

bool PlanSpace::may_be_mended(const Refused& no, std::size_t dimension) const {
  for (; dimension < shapes_; ++dimension) {
    const PlanDimension& open = dimensions_[dimension];
    if (!open.first_divides()) return true;
    const std::vector<std::string>& keys = open.mends;
    if (std::find(keys.begin(), keys.end(), no.key) != keys.end()) return true;
  }
  return false;
}

bool PlanSpace::has(const Choice& choice) const {
  for (std::size_t i = 0; i < choice.size(); ++i) {
    const std::size_t values = i < dimensions_.size() ? dimensions_[i].values.size() : 0;
    if (choice[i] != left_open && choice[i] >= values) return false;
  }
  return std::holds_alternative<SettledPlan>(settle(request(choice)));
}

Scenario PlanSpace::scenario(const Choice& choice) const {
  const PlanRequest chosen = request(choice);
  Scenario scenario = make_scenario(model_, system_, software_of(chosen), chosen, gpus_, {});
  scenario.why_software = why_software_;
  return scenario;
}

std::string PlanSpace::flags(const Choice& choice) const {
  std::string text;
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    if (choice[i] == left_open) continue;
    const std::string& value = dimensions_[i].values[choice[i]];
    const bool unit = dimensions_[i].is_shape() && value == "1" && dimensions_[i].key != "tp";
    if (!unit) text += (text.empty() ? "--" : " --") + dimensions_[i].key + " " + value;
  }
  return text;
}

PlanSpace::Choice PlanSpace::shape_of(const Choice& choice) const {
  Choice shape = choice;
  std::fill(shape.begin() + static_cast<std::ptrdiff_t>(shapes_), shape.end(), left_open);
  return shape;
}

PlanSpace::Choice PlanSpace::layout(const Choice& choice) const {
  Choice layout = choice;
  for (std::size_t i = 0; i < dimensions_.size(); ++i)
    if (!dimensions_[i].of_layout()) layout[i] = left_open;
  return layout;
}

namespace {

std::optional<Seconds> step_of(const Scenario& scenario, EstimateContext& context) {
  if (!memory_of(scenario).fits()) return std::nullopt;
  return estimate(scenario, context).result.step_time;
}

// A plan that cannot run, or not in this memory, is no step.
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
    key->access.copy_value(request, after.plan);
    if (key->text(steps.back().scenario.plan) == key->text(after.plan)) continue;
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
