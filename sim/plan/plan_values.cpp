#include "sim/plan/plan_values.hpp"

#include <algorithm>

#include "sim/core/nearest.hpp"
#include "sim/core/object_reader.hpp"
#include "sim/core/text_file.hpp"
#include "sim/core/value_list.hpp"

namespace orrery {

bool copies_on_arrival(ExpertDispatcher dispatcher) {
  return dispatcher == ExpertDispatcher::deepep || dispatcher == ExpertDispatcher::hybridep;
}

namespace {

const std::string selective_prefix = "selective:";
const std::string full_prefix = "full:";
constexpr int most_layers = 20'000;  // Limit for a virtual stage.

// `what` can be done with the part of a layer that `word` names.
template <class Module>
Module part_of_layer(const std::string& word, const JsonValue& value, const char* what) {
  const auto& names = enum_words<Module>;
  const auto found = std::find(names.begin(), names.end(), word);
  if (found == names.end())
    value.fail("'" + shown_text(word) + "' is not a part of a layer that can be " + what,
               suggestion(word, names));
  return static_cast<Module>(found - names.begin());
}

RecomputeModule module_of(const std::string& word, const JsonValue& value) {
  if (word == "attn_only") return RecomputeModule::core_attn;
  if (word == "norm") return RecomputeModule::layernorm;
  if (word == "act") return RecomputeModule::moe_act;
  return part_of_layer<RecomputeModule>(word, value, "computed again");
}

template <class Module>
std::string listed(const std::set<Module>& modules) {
  std::string words;
  for (const Module module : modules) words += (words.empty() ? "" : "+") + name(module);
  return words;
}

}  // namespace

bool RecomputeChoice::selects(RecomputeModule module) const {
  if (kind != Recompute::selective) return false;
  return modules.empty() ? module == RecomputeModule::core_attn : modules.contains(module);
}

std::string recompute_text(const RecomputeChoice& choice) {
  std::string words = name(choice.kind);
  if (!choice.modules.empty()) words += ":" + listed(choice.modules);
  if (choice.layers > 0) words += ":" + std::to_string(choice.layers);
  return words;
}

RecomputeChoice read_recompute(const JsonValue& value) {
  const std::string word = value.text();
  if (word == "selective:per-op sac") return Recompute::selective;
  if (word.starts_with(full_prefix)) {
    const auto layers = plain_integer(word.substr(full_prefix.size()), most_layers);
    if (!layers || *layers < 1)
      value.fail("'" + shown_text(word) + "' does not say how many layers are computed again",
                 "write full for all, or full:5 for the first five of each virtual stage");
    RecomputeChoice some = Recompute::full;
    some.layers = *layers;
    return some;
  }
  if (!word.starts_with(selective_prefix)) return choice<Recompute>(value);
  std::set<RecomputeModule> modules;
  for (const std::string& module : split(word.substr(selective_prefix.size()), ",+"))
    modules.insert(module_of(module, value));
  // Recomputing the whole includes its parts.
  if (modules.contains(RecomputeModule::moe)) {
    modules.erase(RecomputeModule::moe_act);
    modules.erase(RecomputeModule::shared_experts);
  }
  if (modules == std::set{RecomputeModule::core_attn}) return Recompute::selective;
  return modules;
}

std::string offload_text(const OffloadModules& modules) {
  return modules.empty() ? "none" : listed(modules);
}

OffloadModules read_offload(const JsonValue& value) {
  const std::string word = value.text();
  OffloadModules modules;
  if (word == "none") return modules;
  for (const std::string& module : split(word, ",+"))
    modules.insert(part_of_layer<OffloadModule>(module, value, "offloaded"));
  return modules;
}

}  // namespace orrery
