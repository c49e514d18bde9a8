#include "sim/explorer/state_parameters.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "sim/core/value_list.hpp"
#include "sim/layers/memory.hpp"
#include "sim/search/dimension.hpp"

namespace orrery {
namespace {

using Words = std::vector<std::string>;

Words words_of(const std::set<std::int64_t>& numbers) {
  Words words;
  for (const std::int64_t number : numbers) words.push_back(std::to_string(number));
  return words;
}

// 1, 2, 3, 4, 6, 8, 12, 16, ... times `unit`, up to `most`.
std::set<std::int64_t> round_multiples(std::int64_t unit, std::int64_t most) {
  std::set<std::int64_t> numbers;
  for (std::int64_t power = 1; power * unit <= most; power *= 2) {
    numbers.insert(power * unit);
    if (3 * power * unit / 2 <= most && power > 1) numbers.insert(3 * power / 2 * unit);
  }
  return numbers;
}

class ParameterLister {
 public:
  ParameterLister(const ExploredState& state, const StateInputs& inputs)
      : state_{state}, inputs_{inputs} {
    try {
      now_ = inputs.scenario(state);
    } catch (const Error&) {
      // The page offers parameters for such states too.
    }
  }

  std::vector<StateParameter> parameters() const {
    std::vector<StateParameter> parameters;
    parameters.push_back(gpus());
    const std::int64_t gbs = state_.says("gbs") ? number("gbs", 1) : 1;
    const std::vector<PlanDimension> searched =
        plan_dimensions(inputs_.model, std::max(1, state_.gpus()), gbs);
    for (const PlanKey& key : plan_keys()) {
      if (key.name == "dp") continue;  // The number of GPUs and the other degrees decide it.
      if (key.part == PlanPart::experts && !inputs_.model.experts) continue;
      if ((key.name == "ep" || key.name == "etp") && !inputs_.model.experts) continue;
      Words words = key.access.words;
      for (const PlanDimension& dimension : searched)
        if (dimension.key == key.name && dimension.kind != PlanDimension::Kind::setting &&
            key.name != "cp_comm")
          words = dimension.values;
      const Words usual = usual_words(key.name);
      parameters.push_back(parameter(key, usual.empty() ? words : usual));
    }
    return parameters;
  }

  ParameterValue value(const std::string& key, const std::string& word) const {
    ParameterValue value{word, "", changes_with(state_, key, word), std::nullopt};
    try {
      const Scenario scenario = inputs_.scenario(changed(state_, value.changes));
      // Even routing takes no time to look up and needs no more memory than any other.
      const MemoryReport memory = least_memory_of(scenario);
      value.memory = memory.peak() / memory.capacity;
    } catch (const Error& error) {
      value.why_not = error.what();
    }
    return value;
  }

 private:
  std::int64_t number(const char* key, std::int64_t otherwise) const {
    if (now_) return std::get<std::int64_t>(plan_key(key).access.value(now_->plan));
    const std::string word = state_.word(key);
    if (word.empty()) return otherwise;
    PlanRequest probe;  // The state was read before, so it is a number.
    set_plan_flag(probe, key, word);
    return std::stoll(word);
  }

  StateParameter gpus() const {
    StateParameter parameter{nullptr,
                             "gpus",
                             "GPUs in all; data parallelism follows from it",
                             state_.word("gpus"),
                             true,
                             true,
                             true,
                             {}};
    const System& system = inputs_.context.system();
    const std::int64_t most = system.max_gpus > 0 ? system.max_gpus : 1 << 18;
    const std::int64_t replica = number("tp", 1) * number("pp", 1) * number("cp", 1);
    std::set<std::int64_t> numbers = round_multiples(1, most);
    numbers.merge(round_multiples(replica, most));
    if (system.max_gpus > 0) numbers.insert(system.max_gpus);
    numbers.insert(state_.gpus());
    numbers.erase(0);
    for (const std::string& word : words_of(numbers))
      parameter.values.push_back(value("gpus", word));
    return parameter;
  }

  // Values of keys for which neither a list of words nor a search gives them.
  Words usual_words(const std::string& key) const {
    const std::int64_t dp = now_ ? now_->plan.dp : 1;
    if (key == "gbs") {
      const std::int64_t gbs = number("gbs", 1);
      std::set<std::int64_t> numbers =
          round_multiples(number("mbs", 1) * dp, std::max<std::int64_t>(1 << 16, 8 * gbs));
      numbers.insert(gbs);
      return words_of(numbers);
    }
    if (key == "documents")
      return {"none", "fixed:1024", "lognormal:256,1", "lognormal:1024,1", "lognormal:4096,1"};
    if (key == "lora_rank") return {"8", "16", "32", "64", "128", "256"};
    if (key == "lora_targets") return {"all-linear", "qkv", "qkv+proj", "fc1+fc2"};
    if (key == "seq") {
      std::set<std::int64_t> numbers = round_multiples(512, 1 << 20);
      numbers.insert(number("seq", 2048));
      return words_of(numbers);
    }
    if (key == "etp") return {"1", "2", "4", "8"};
    if (key == "dp_replicate") {
      const std::int64_t ranks = now_ ? now_->plan.data_ranks() : 1;
      return divisors(ranks, std::max<std::int64_t>(1, ranks / 2));
    }
    if (key == "offload_layers" || key == "bf16_start_layers" || key == "bf16_end_layers") {
      std::set<std::int64_t> numbers = round_multiples(1, inputs_.model.layers);
      numbers.insert({0, inputs_.model.layers, number(key.c_str(), 0)});
      return words_of(numbers);
    }
    if (key == "offload_modules")
      return {"none", "core_attn+attn_proj", "attn_norm", "mlp_norm", "expert_fc1", "moe_act"};
    if (key == "local_batch") {
      const std::int64_t mbs = number("mbs", 1), all = now_ ? now_->plan.gbs / now_->plan.dp : mbs;
      std::set<std::int64_t> numbers = round_multiples(mbs, all);
      numbers.insert({0, number("local_batch", 0)});
      return words_of(numbers);
    }
    if (key == "offload_optimizer") {
      std::set<std::int64_t> numbers{0, 25, 50, 75, 100, number("offload_optimizer", 0)};
      return words_of(numbers);
    }
    if (key == "layers") {
      Words words{"even"};
      if (now_)
        for (const StageLayers& split : neighbour_splits(*now_))
          words.push_back(stage_layers_text(split));
      return words;
    }
    const NamesAllowed& names = inputs_.inputs.names();
    if (key == "software") {
      Words words{""};
      words.insert(words.end(), names.software.begin(), names.software.end());
      return words;
    }
    if (key == "routing") {
      Words words = names.routings;
      words.insert(words.end(), {"zipf:0.5", "zipf:1.2", "hot:0.5", "power-law:1"});
      return words;
    }
    // Those that can do every collective: Ring with Simple always can.
    if (key == "nccl_algo") return {"any", "Ring", "Ring+Tree", "^NVLS"};
    if (key == "nccl_proto") return {"any", "Simple", "LL128+Simple", "^LL128"};
    return {};
  }

  StateParameter parameter(const PlanKey& key, Words words) const {
    StateParameter parameter;
    parameter.key = &key;
    parameter.name = key.name;
    parameter.help = key.help;
    parameter.is_set = state_.says(key.name);
    if (now_) {
      parameter.matters = key.can_change(now_->plan);
      parameter.now = key.has_value(now_->plan) ? key.text(now_->plan) : "";
    } else {
      parameter.now = state_.word(key.name);
    }
    parameter.numbers = key.access.form == Form::number;
    const auto given = inputs_.inputs.names().given.find(key.name);
    const auto offer = [&](const std::string& word) {
      if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
    };
    if (given != inputs_.inputs.names().given.end())
      for (const std::string& word : given->second) offer(word);
    if (!parameter.now.empty()) offer(parameter.now);
    if (parameter.numbers)
      std::sort(words.begin(), words.end(), [](const std::string& a, const std::string& b) {
        return std::pair{a.size(), a} < std::pair{b.size(), b};
      });
    for (const std::string& word : words) parameter.values.push_back(value(key.name, word));
    return parameter;
  }

  const ExploredState& state_;
  const StateInputs& inputs_;
  std::optional<Scenario> now_;
};

std::string trimmed(std::string word) {
  while (!word.empty() && std::string{",;."}.find(word.back()) != std::string::npos)
    word.pop_back();
  return word;
}

// "--pp 16" or "pp=16" at words[i]: its changes, and its number of words.
std::pair<StateChanges, std::size_t> change_at(const Words& words, std::size_t i,
                                               const ExploredState& state) {
  const auto known = [](const std::string& key) { return key == "gpus" || find_plan_key(key); };
  const std::string& word = words[i];
  if (word.starts_with("--") && i + 1 < words.size() && known(word.substr(2)))
    return {changes_with(state, word.substr(2), trimmed(words[i + 1])), 2};
  const std::size_t sign = word.find('=');
  if (sign != word.npos && known(word.substr(0, sign)))
    return {changes_with(state, word.substr(0, sign), trimmed(word.substr(sign + 1))), 1};
  return {{}, 0};
}

// Simultaneous changes: one may set a key that another leaves open.
class JoinedChanges {
 public:
  void add(const StateChanges& changes) {
    for (const auto& [key, word] : changes)
      if (!word.empty() || !all_.contains(key)) all_[key] = word;
  }
  const StateChanges& all() const { return all_; }

 private:
  StateChanges all_;
};

}  // namespace

std::vector<StateParameter> state_parameters(const ExploredState& state,
                                             const StateInputs& inputs) {
  return ParameterLister{state, inputs}.parameters();
}

StateChanges changes_of(const std::string& flags, const ExploredState& state) {
  const Words words = words_in(flags);
  JoinedChanges joined;
  for (std::size_t i = 0; i < words.size();) {
    const auto [changes, taken] = change_at(words, i, state);
    joined.add(changes);
    i += std::max<std::size_t>(1, taken);
  }
  return joined.all();
}

std::vector<Remedy> remedies_in(const std::string& text, const ExploredState& state,
                                const StateInputs& inputs) {
  // The remedy stands behind the last semicolon (Error).
  const std::size_t last = text.rfind("; ");
  if (last == text.npos) return {};
  const Words words = words_in(text.substr(last + 2));
  std::vector<Remedy> remedies;
  const auto keep = [&](const std::string& flags) {
    if (flags.empty()) return;
    Remedy remedy{flags, changes_of(flags, state)};
    try {
      const Scenario scenario = inputs.scenario(changed(state, remedy.changes));
      const MemoryReport memory = memory_of(scenario, *inputs.context.loads(scenario));
      remedy.runs = memory.fits();
      remedies.push_back(remedy);
    } catch (const Error&) {
      // Leads to another refusal: no way out.
    }
  };
  // Consecutive changes are joined: "--pp 16 --recompute full".
  std::string flags;
  for (std::size_t i = 0; i < words.size();) {
    const std::size_t taken = change_at(words, i, state).second;
    if (taken == 0) {
      keep(std::exchange(flags, ""));
      ++i;
    }
    for (std::size_t j = 0; j < taken; ++j)
      flags += (flags.empty() ? "" : " ") + trimmed(words[i++]);
  }
  keep(flags);
  return remedies;
}

}  // namespace orrery
