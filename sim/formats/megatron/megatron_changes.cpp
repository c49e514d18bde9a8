#include "sim/formats/megatron/megatron_changes.hpp"

#include <algorithm>
#include <map>

namespace orrery {
namespace {

using Names = std::vector<std::string>;

// What a plan does not decide, though software and catalog say something of it.
bool is_the_runs(const std::string& name) {
  static const char* const names[] = {
      "grad_reduce_in_bf16",          "attention_dropout",      "hidden_dropout", "vocab_size",
      "make_vocab_size_divisible_by", "max_position_embeddings"};
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// Arguments that say one thing in several ways: where one of them changes, the others go.
const std::vector<Names>& groups() {
  static const std::vector<Names> all{
      {"num_layers_per_virtual_pipeline_stage", "num_virtual_stages_per_pipeline_rank",
       "pipeline_model_parallel_layout"},
      {"attention_backend", "use_flash_attn"},
      {"bf16", "fp16"},
      {"fp8", "fp8_recipe", "fp8_param_gather", "fp8_amax_history_len", "fp8_amax_compute_algo",
       "fp8_margin", "fp8_interval"},
      {"recompute_granularity", "recompute_method", "recompute_num_layers", "recompute_modules"},
      {"use_megatron_fsdp", "data_parallel_sharding_strategy"},
  };
  return all;
}

struct Flag {
  std::string name, text;  ///< "num_layers", "--num-layers 32"
};

std::vector<Flag> named(const MegatronFlags& flags) {
  std::vector<Flag> all;
  for (const std::string& text : flags.flags)
    all.push_back({MegatronArguments::name_of_flag(text.substr(0, text.find(' '))), text});
  return all;
}

const Flag* find(const std::vector<Flag>& flags, const std::string& name) {
  const auto found =
      std::find_if(flags.begin(), flags.end(), [&](const Flag& flag) { return flag.name == name; });
  return found == flags.end() ? nullptr : &*found;
}

class ArgumentComparison {
 public:
  ArgumentComparison(const MegatronArguments& script, const MegatronFlags& before,
                     const MegatronFlags& after)
      : script_{script}, before_{named(before)}, after_{named(after)} {}

  std::vector<ArgumentChange> changes() {
    for (const Flag& flag : after_) {
      const Flag* was = find(before_, flag.name);
      if (!was || was->text != flag.text) change(flag.name, flag.text);
    }
    for (const Flag& flag : before_)
      if (!find(after_, flag.name)) change(flag.name, "");
    for (std::size_t i = 0, count = changes_.size(); i < count; ++i) leave_out_others(i);
    return std::move(changes_);
  }

 private:
  std::string has(const std::string& name) const {
    const auto* value = script_.find(name);
    return value ? value->written() : "";
  }

  void change(const std::string& name, const std::string& after) {
    const std::string before = has(name);
    const bool is_told = std::any_of(changes_.begin(), changes_.end(),
                                     [&](const ArgumentChange& c) { return c.name == name; });
    if (before != after && !is_the_runs(name) && !is_told)
      changes_.push_back({name, before, after});
  }

  // Of the changed argument's group, what neither the plan has nor had.
  void leave_out_others(std::size_t changed) {
    for (const Names& group : groups()) {
      if (std::find(group.begin(), group.end(), changes_[changed].name) == group.end()) continue;
      const bool goes = changes_[changed].after.empty();
      for (const std::string& name : group)
        if (!find(after_, name) && (goes || !find(before_, name)) && keeps_not(name, goes))
          change(name, "");
    }
  }
  // A recipe of fp8 stays as long as there is fp8.
  static bool keeps_not(const std::string& name, bool goes) {
    return goes || !name.starts_with("fp8");
  }

  const MegatronArguments& script_;
  std::vector<Flag> before_, after_;
  std::vector<ArgumentChange> changes_;
};

}  // namespace

std::vector<ArgumentChange> changed_arguments(const MegatronArguments& script,
                                              const MegatronFlags& before,
                                              const MegatronFlags& after) {
  return ArgumentComparison{script, before, after}.changes();
}

std::string changed_script_text(const MegatronArguments& script,
                                const std::vector<ArgumentChange>& changes) {
  std::vector<std::string> lines;
  const auto change_of = [&](const std::string& name) {
    return std::find_if(changes.begin(), changes.end(),
                        [&](const ArgumentChange& change) { return change.name == name; });
  };
  for (const std::string& name : script.order()) {
    const auto change = change_of(name);
    const std::string line = change == changes.end() ? script.find(name)->written() : change->after;
    if (!line.empty()) lines.push_back(line);
  }
  for (const ArgumentChange& change : changes)
    if (change.before.empty() && !change.after.empty()) lines.push_back(change.after);
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : " \\\n") + line;
  return text + "\n";
}

}  // namespace orrery
