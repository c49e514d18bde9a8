#include <algorithm>
#include <map>

#include "sim/core/number_text.hpp"
#include "sim/core/table.hpp"
#include "sim/core/value_list.hpp"
#include "sim/formats/megatron/megatron_parts.hpp"
#include "sim/plan/plan_keys.hpp"

namespace orrery {
namespace {

using Names = std::vector<std::string>;

// Arguments that a plan does not decide, though software and catalog mention them.
bool belongs_to_run(const std::string& name) {
  static const char* const names[] = {
      "grad_reduce_in_bf16",          "attention_dropout",      "hidden_dropout", "vocab_size",
      "make_vocab_size_divisible_by", "max_position_embeddings"};
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// Alternative arguments for one setting: if one of them changes, the others are dropped.
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
    const bool is_listed = std::any_of(changes_.begin(), changes_.end(),
                                       [&](const ArgumentChange& c) { return c.name == name; });
    if (before != after && !belongs_to_run(name) && !is_listed)
      changes_.push_back({name, before, after});
  }

  // Drops the other arguments of the changed one's group that neither plan has.
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
  return joined(lines, " \\\n") + "\n";
}

namespace {

// "tp 4 -> 2": the changed keys of the plan, which are the reason for its arguments.
std::string reason_of(const PlanStep& step, const Plan& before) {
  std::string text;
  for (const std::string& name : step.keys) {
    const PlanKey& key = plan_key(name);
    const auto value = [&](const Plan& plan) {
      return key.has_value(plan) ? key.text(plan) : std::string{"none"};
    };
    text += (text.empty() ? "" : ", ") + name + " " + value(before) + " -> " +
            value(step.scenario.plan);
  }
  return text;
}

std::string change_text(const ArgumentChange& change) {
  if (change.after.empty()) return "without " + change.before;
  if (change.before.empty()) return change.after;
  const std::size_t word = change.after.find(' ');
  return change.before + " -> " +
         (word == std::string::npos ? change.after : change.after.substr(word + 1));
}

std::string seconds(std::optional<Seconds> time) {
  return time ? fixed(time->si(), 3) : "does not fit";
}

std::string change(std::optional<Seconds> before, std::optional<Seconds> after) {
  if (!before || !after) return "";
  return signed_percent((after->si() - before->si()) / before->si());
}

}  // namespace

std::string megatron_changes_text(const MegatronArguments& script,
                                  const std::vector<PlanStep>& steps) {
  Table table{{{"step (s)"}, {"change"}, {"because of", Align::left}, {"arguments", Align::left}}};
  table.add_row({seconds(steps.front().step), "", "the script", ""});
  const MegatronFlags first = megatron_flags(steps.front().scenario);
  std::vector<ArgumentChange> so_far;
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const std::vector<ArgumentChange> changes =
        changed_arguments(script, first, megatron_flags(steps[i].scenario));
    std::vector<std::string> cells{seconds(steps[i].step), change(steps[i - 1].step, steps[i].step),
                                   reason_of(steps[i], steps[i - 1].scenario.plan)};
    const auto add = [&](const std::string& argument) {
      cells.push_back(argument);
      table.add_row(std::exchange(cells, {"", "", ""}));
    };
    for (const ArgumentChange& change : changes)
      if (std::find(so_far.begin(), so_far.end(), change) == so_far.end()) add(change_text(change));
    for (const ArgumentChange& change : so_far)  // A later key undoes it.
      if (std::none_of(changes.begin(), changes.end(),
                       [&](const ArgumentChange& other) { return other.name == change.name; }))
        add(change.before.empty() ? "without " + change.after : change.before);
    if (cells.size() == 3 && !cells[0].empty()) table.add_row(cells);
    so_far = changes;
  }
  return table.text(TextWidth::unlimited) + (steps.size() == 1 ? "the script has this plan\n" : "");
}

}  // namespace orrery
