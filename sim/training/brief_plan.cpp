#include "sim/training/brief_plan.hpp"

#include <algorithm>
#include <vector>

#include "sim/plan/plan_keys.hpp"

namespace orrery {
namespace {

using Names = std::vector<std::string>;

// Columns of the table: what each of them tells, in its order.
const Names degree_keys{"tp", "cp", "pp", "vpp", "ep", "dp", "mbs"};
const Names switch_keys{"recompute", "sp", "zero", "dp_overlap", "tp_overlap", "schedule"};

bool contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// "tp8", "dp-overlap", "zb-h1": numbers with their key, switches without a value, words alone.
std::string brief(const PlanKey& key, const Plan& plan) {
  const PlanValue value = key.access.value(plan);
  std::string name = key.name;
  std::replace(name.begin(), name.end(), '_', '-');
  if (std::holds_alternative<std::string>(value)) return text_of(value);
  return std::holds_alternative<bool>(value) ? name : name + text_of(value);
}

}  // namespace

bool is_brief_key(const std::string& key) {
  return contains(degree_keys, key) || contains(switch_keys, key);
}

std::string brief_degrees(const Plan& plan) {
  std::string text;
  for (const std::string& name : degree_keys) {
    const PlanKey& key = plan_key(name);
    if (key.needs_saying(plan)) text += (text.empty() ? "" : " ") + brief(key, plan);
  }
  return text;
}

std::string brief_switches(const Plan& plan) {
  std::vector<std::string> words;
  const auto add = [&](const PlanKey& key) {
    if (key.needs_saying(plan)) words.push_back(brief(key, plan));
  };
  for (const std::string& name : switch_keys)
    if (name != "schedule") add(plan_key(name));
  if (!plan.schedule->in_megatron()) words.push_back(plan_key("schedule").text(plan));
  for (const PlanKey& key : plan_keys())
    if (key.searched && !contains(degree_keys, key.name) && !contains(switch_keys, key.name))
      add(key);
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

}  // namespace orrery
