#include "sim/plan/plan_values.hpp"

#include <algorithm>

#include "sim/core/nearest.hpp"
#include "sim/core/object_reader.hpp"
#include "sim/core/text_file.hpp"

namespace orrery {

const std::vector<std::string>& cuda_graph_names() {
  static const std::vector<std::string> names{"none", "router", "attention", "attention+router",
                                              "step"};
  return names;
}

const std::vector<std::string>& expert_dispatcher_names() {
  static const std::vector<std::string> names{"alltoall", "allgather",          "hierarchical",
                                              "deepep",   "deepep_low_latency", "hybridep"};
  return names;
}

const std::string& name(ExpertDispatcher dispatcher) {
  return expert_dispatcher_names()[static_cast<std::size_t>(dispatcher)];
}

bool copies_on_arrival(ExpertDispatcher dispatcher) {
  return dispatcher == ExpertDispatcher::deepep || dispatcher == ExpertDispatcher::hybridep;
}

namespace {

const std::string selective_prefix = "selective:";
const std::string full_prefix = "full:";
constexpr int most_layers = 20'000;  // Of a virtual stage.

RecomputeModule module_of(const std::string& word, const JsonValue& value) {
  if (word == "attn_only") return RecomputeModule::core_attn;
  if (word == "norm") return RecomputeModule::layernorm;
  if (word == "act") return RecomputeModule::moe_act;
  const auto& names = recompute_module_names();
  const auto found = std::find(names.begin(), names.end(), word);
  if (found == names.end())
    value.fail("'" + shown_text(word) + "' is not a part of a layer that can be computed again",
               suggestion(word, names));
  return static_cast<RecomputeModule>(found - names.begin());
}

}  // namespace

const std::vector<std::string>& recompute_names() {
  static const std::vector<std::string> names{"none", "selective", "full"};
  return names;
}
const std::string& name(Recompute kind) {
  return recompute_names()[static_cast<std::size_t>(kind)];
}

const std::vector<std::string>& recompute_module_names() {
  static const std::vector<std::string> names{"core_attn", "layernorm",      "mla_up_proj", "mlp",
                                              "moe_act",   "shared_experts", "moe"};
  return names;
}
const std::string& name(RecomputeModule module) {
  return recompute_module_names()[static_cast<std::size_t>(module)];
}

const std::vector<RecomputeModule>& all_recompute_modules() {
  static const std::vector<RecomputeModule> modules{
      RecomputeModule::core_attn, RecomputeModule::layernorm, RecomputeModule::mla_up_proj,
      RecomputeModule::mlp,       RecomputeModule::moe_act,   RecomputeModule::shared_experts,
      RecomputeModule::moe};
  return modules;
}

bool RecomputeChoice::selects(RecomputeModule module) const {
  if (kind != Recompute::selective) return false;
  return modules.empty() ? module == RecomputeModule::core_attn : modules.contains(module);
}

std::string recompute_text(const RecomputeChoice& choice) {
  std::string words = name(choice.kind);
  const char* before = ":";
  for (const RecomputeModule module : choice.modules) {
    words += before + name(module);
    before = "+";
  }
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
  if (!word.starts_with(selective_prefix)) return choice<Recompute>(value, recompute_names());
  std::set<RecomputeModule> modules;
  for (std::size_t begin = selective_prefix.size(); begin <= word.size();) {
    const std::size_t end = std::min(word.find_first_of(",+", begin), word.size());
    modules.insert(module_of(word.substr(begin, end - begin), value));
    begin = end + 1;
  }
  // What is computed again with the whole is not computed again alone.
  if (modules.contains(RecomputeModule::moe)) {
    modules.erase(RecomputeModule::moe_act);
    modules.erase(RecomputeModule::shared_experts);
  }
  if (modules == std::set{RecomputeModule::core_attn}) return Recompute::selective;
  return modules;
}

}  // namespace orrery
