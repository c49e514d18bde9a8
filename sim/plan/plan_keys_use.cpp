#include <algorithm>
#include <cassert>

#include "sim/core/flag_value.hpp"
#include "sim/core/nearest.hpp"
#include "sim/plan/plan_keys.hpp"

namespace orrery {
namespace {

const std::vector<std::string>& key_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const PlanKey& key : plan_keys()) list.push_back(key.name);
    return list;
  }();
  return names;
}

}  // namespace

std::string text_of(const PlanValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
  return std::get<std::string>(value);
}

std::string PlanKey::text(const Plan& plan) const { return text_of(access.value(plan)); }

bool PlanKey::needs_saying(const Plan& plan) const {
  return has_value(plan) && (told ? told(plan) : can_change(plan)) && text(plan) != unsaid;
}

const PlanKey* find_plan_key(const std::string& name) {
  const auto found = std::find_if(plan_keys().begin(), plan_keys().end(),
                                  [&](const PlanKey& key) { return key.name == name; });
  return found == plan_keys().end() ? nullptr : &*found;
}

const PlanKey& plan_key(const std::string& name) {
  const PlanKey* found = find_plan_key(name);
  assert(found);
  return *found;
}

OpenRange open_range_of(const std::string& key) {
  const PlanKey* found = find_plan_key(key);
  return found ? found->range : key == "gpus" ? OpenRange::doubles : OpenRange::counts;
}

void set_plan_key(PlanRequest& plan, const std::string& key, const JsonValue& value) {
  if (const PlanKey* found = find_plan_key(key)) return found->access.ask(plan, value);
  value.fail("'" + shown_text(key) + "' is not a key of a plan", suggestion(key, key_names()));
}

void set_plan_flag(PlanRequest& plan, const std::string& key, const std::string& text) {
  set_plan_key(plan, key, value_of_flag(key, text));
}

void read_plan(PlanRequest& plan, const JsonValue& json) {
  json.allow_only(key_names());
  for (const std::string& key : json.keys())
    if (const auto value = json.find(key)) set_plan_key(plan, key, *value);
}

void settle(Plan& plan, const PlanRequest& request, const Software& software) {
  for (const PlanKey& key : plan_keys()) key.access.settle(plan, request, software);
}

PlanRequest plan_again(const Plan& plan) {
  PlanRequest request;
  for (const PlanKey& key : plan_keys()) {
    const bool left_open = key.access.may_be_open && !key.can_change(plan);
    const bool by_itself = key.follows && key.follows(plan);
    if (key.has_value(plan) && !left_open && !by_itself) key.access.ask_again(request, plan);
  }
  return request;
}

}  // namespace orrery
