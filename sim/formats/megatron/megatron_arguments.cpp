#include "sim/formats/megatron/megatron_arguments.hpp"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "sim/core/json_value.hpp"
#include "sim/core/statistics.hpp"
#include "sim/core/text_file.hpp"
#include "sim/core/value_list.hpp"
#include "sim/formats/megatron/launch_command.hpp"
#include "sim/formats/megatron/megatron_parts.hpp"
#include "sim/formats/recipe/other_launchers.hpp"

namespace orrery {
namespace {

// Megatron-LM, megatron/training/training.py, training_log.
constexpr std::string_view mark = "elapsed time per iteration (ms):";

}  // namespace

std::optional<MeasuredSteps> measured_steps(const std::string& log) {
  std::vector<double> times_ms;
  for (const std::string_view line : lines_of(log)) {
    const std::size_t at = line.find(mark);
    if (at == line.npos) continue;
    const auto words = words_of(line.substr(at + mark.size()));
    const auto time = words.empty() ? std::nullopt : plain_number(words[0]);
    if (time && *time > 0.0) times_ms.push_back(*time);
  }
  if (times_ms.empty()) return std::nullopt;
  if (times_ms.size() > 1) times_ms.erase(times_ms.begin());
  return MeasuredSteps{Seconds{median(times_ms) / 1000.0}, static_cast<int>(times_ms.size())};
}

namespace {

// Flags whose value has another name (dest) or sense in arguments.py: {flag, name, value or none}.
struct Renamed {
  std::string_view flag, name, value;
};
constexpr Renamed renamed[] = {
    {"disable_bias_linear", "add_bias_linear", "False"},
    {"no_overlap_p2p_communication", "overlap_p2p_comm", "False"},
    {"fp8_format", "fp8", ""},
    // Names of 2022 and 2023.
    {"fp8_hybrid", "fp8", "hybrid"},
    {"fp8_e4m3", "fp8", "e4m3"},
    {"fp4_format", "fp4", ""},
    {"recompute_activations", "recompute_granularity", "selective"},
    // Megatron-DeepSpeed (microsoft, megatron/arguments.py).
    {"moe_expert_parallel_size", "expert_model_parallel_size", ""},
    {"use_flash_attn_v1", "use_flash_attn", ""},
    {"use_flash_attn_v2", "use_flash_attn", ""},
    {"use_flash_attn_triton", "use_flash_attn", ""},
};

// "--num-layers" as "num_layers".
std::string underscored(const std::string& flag) {
  std::string name = flag.substr(2);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// Quoted for a shell, which still expands variables in it.
std::string shell_quoted(const std::string& word) {
  if (!word.empty() && word.find_first_of(" \t\n'\"\\()[]{}*?;|&<>`!#~") == std::string::npos)
    return word;
  const bool has_variable = word.find('$') != std::string::npos;
  std::string quoted;
  for (const char c : word)
    if (has_variable && (c == '"' || c == '\\' || c == '`'))
      quoted += std::string{'\\', c};
    else
      quoted += !has_variable && c == '\'' ? "'\\''" : std::string{c};
  return has_variable ? "\"" + quoted + "\"" : "'" + quoted + "'";
}

bool is_flag(const std::string& word) {
  return word.size() > 2 && word.starts_with("--") &&
         std::isalnum(static_cast<unsigned char>(word[2]));
}

// The arguments without which there is no model to simulate.
bool describes_model(const std::map<std::string, MegatronArguments::Value>& values) {
  return values.contains("num_layers") || values.contains("hidden_size");
}

}  // namespace

std::string MegatronArguments::Value::text() const { return joined(words, " "); }

std::string MegatronArguments::Value::written() const {
  std::string all = name;
  if (is_implied) return all;
  for (const std::string& word : words) all += " " + shell_quoted(word);
  return all;
}

MegatronArguments MegatronArguments::read(const std::string& text, const std::string& file,
                                          const std::map<std::string, std::string>& given,
                                          const ShellFiles& files) {
  require_text(text, file, "a launch script or a list of Megatron-LM's arguments");
  MegatronArguments arguments;
  arguments.place_ = {file, ""};
  arguments.files_ = files;
  arguments.read_list(lines_of(text));
  if (describes_model(arguments.values_)) {
    arguments.is_complete_ = true;
    arguments.measured_ = measured_steps(text);
  } else {
    arguments.values_.clear();
    if (is_model_config(text)) {
      const ConfigScript config = script_of_config(text, file);
      ShellScript script = read_shell_script(config.text, file, given);
      for (auto& command : script.commands)
        for (ShellWord& word : command)
          word.line = config.lines[std::min(word.line, config.lines.size() - 1)];
      arguments.read_script(script);
    } else {
      const ShellScript script = read_shell_script(text, file, given, files);
      arguments.read_script(script);
      if (!describes_model(arguments.values_) && arguments.model_name_.empty()) {
        refuse_other_file(text, file, "megatron");
        refuse_other_launcher(script);
      }
    }
  }
  for (const auto& [name, value] : given)
    if (value == "null") arguments.leave_out(name_of_flag("--" + name));
  refuse_unpriced(arguments);
  if (!describes_model(arguments.values_) && arguments.model_name_.empty())
    arguments.fail_without_model();
  return arguments;
}

MegatronArguments MegatronArguments::of_recipe(const std::string& file,
                                               std::map<std::string, Value> values,
                                               std::map<std::string, std::string> spelling,
                                               std::map<std::string, std::string> nccl) {
  MegatronArguments arguments;
  arguments.nccl_ = std::move(nccl);
  arguments.place_ = {file, ""};
  arguments.values_ = std::move(values);
  arguments.spelling_ = std::move(spelling);
  arguments.is_complete_ = true;
  refuse_unpriced(arguments);
  return arguments;
}

// Files that a script could not read may have held the arguments.
void MegatronArguments::fail_without_model() const {
  const std::string problem =
      "holds no arguments of Megatron-LM (no --num-layers or --hidden-size)";
  const auto missing = std::find_if(notes_.begin(), notes_.end(), [](const std::string& note) {
    return note.find(": not read: ") != std::string::npos;
  });
  if (missing != notes_.end())
    fail_input(place_, problem + "; " + *missing,
               "put the file where the script reads it, or give what names it: --set 1=WORD for "
               "the script's first word");
  fail_input(place_, problem,
             "give the launch script, or the list of arguments that Megatron-LM prints");
}

// "  num_layers ...................................... 32", behind any prefix of a launcher.
void MegatronArguments::read_list(const std::vector<std::string_view>& lines) {
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto words = words_of(lines[i]);
    for (std::size_t w = 1; w + 1 < words.size(); ++w) {
      if (words[w].size() < 3 || words[w].find_first_not_of('.') != std::string_view::npos)
        continue;
      Value value{{words.begin() + static_cast<std::ptrdiff_t>(w) + 1, words.end()},
                  std::string{words[w - 1]},
                  line_place(place_.file, i)};
      values_.insert_or_assign(value.name, value);
      break;
    }
  }
}

void MegatronArguments::read_script(const ShellScript& script) {
  notes_ = script.notes;
  const LaunchCommand launch = find_launch(script, notes_);
  for (const auto& [name, words] : script.variables)
    if (name.starts_with("NCCL_") && !words.empty()) nccl_[name] = words[0].text;
  program_ = launch.program;
  gpus_ = launch.gpus;
  Value* last = nullptr;
  for (const ShellWord& word : launch.arguments) {
    if (!is_flag(word.text)) {
      // An unset variable is no word; as the first word of a flag it is named where it is needed.
      const bool is_absent = is_unset_variable(word.text) && last && !last->words.empty();
      if (last && !last->is_implied && !is_absent) last->words.push_back(word.text);
      continue;
    }
    const std::size_t equals = word.text.find('=');
    const std::string flag = word.text.substr(0, equals);
    const std::string name = name_of_flag(flag);
    Value value{{}, flag, line_place(script.files[word.file], word.line)};
    if (equals != std::string::npos) value.words.push_back(word.text.substr(equals + 1));
    for (const Renamed& other : renamed)
      if (!other.value.empty() && underscored(flag) == other.flag)
        value = {{std::string{other.value}}, flag, value.place, true};
    std::erase(order_, name);
    order_.push_back(name);
    last = &values_.insert_or_assign(name, value).first->second;
  }
  const std::string task = swift_task(launch.arguments);
  if (task.empty()) return;
  model_name_ = take_swift_arguments(task, place_, values_, notes_);
  order_.clear();
  // swift/cli/_megatron: torchrun of so many processes on so many nodes, one if nothing is said.
  const auto count = [&](const char* name) {
    for (const auto& [variable, words] : script.variables)
      if (variable == name && !words.empty()) return plain_integer(words[0].text, 1 << 20);
    return std::string_view{name} == "NNODES" ? std::optional{1} : std::nullopt;
  };
  if (const auto each = count("NPROC_PER_NODE"), nodes = count("NNODES"); each && nodes)
    gpus_ = static_cast<int>(std::min<std::int64_t>(std::int64_t{*each} * *nodes, 1 << 24));
}

void MegatronArguments::leave_out(const std::string& name) {
  values_.erase(name);
  std::erase(order_, name);
}

std::string MegatronArguments::name_of_flag(const std::string& flag) {
  const std::string name = underscored(flag);
  for (const Renamed& other : renamed)
    if (name == other.flag) return std::string{other.name};
  return name;
}

std::vector<std::string> MegatronArguments::written() const {
  std::vector<std::string> all;
  for (const std::string& name : order_) all.push_back(values_.at(name).written());
  return all;
}

const MegatronArguments::Value* MegatronArguments::find(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return nullptr;
  read_.insert(name);
  const Value& value = found->second;
  return value.words.size() == 1 && value.words[0] == "None" ? nullptr : &value;
}

std::vector<std::string> MegatronArguments::names_from(const std::string& begin) const {
  std::vector<std::string> names;
  for (auto at = values_.lower_bound(begin); at != values_.end() && at->first.starts_with(begin);
       ++at)
    names.push_back(at->first);
  return names;
}

std::optional<std::string> MegatronArguments::other_file(const std::string& path) const {
  return files_ ? files_(path) : std::nullopt;
}

bool MegatronArguments::flag(const std::string& name, bool absent) const {
  const Value* value = find(name);
  if (!value) return absent;
  // A word behind a flag that takes none belongs to the command: `bash -c "... --bf16" | tee log`.
  return value->words.empty() || value->words[0] != "False";
}

std::int64_t MegatronArguments::number(const std::string& name, std::int64_t absent) const {
  const Value* value = find(name);
  if (!value) return absent;
  const std::string word = value->words.empty() ? "" : value->words[0];
  if (word.starts_with('$')) {
    const std::string variable = word.substr(1, word.find_first_of("({ ", 1) - 1);
    fail(name, "is " + shown_text(word) + ", which the script does not say",
         "give it: --set " + (variable.empty() ? "NAME" : shown_text(variable)) + "=N");
  }
  const auto number = plain_integer(word, 1 << 30);
  if (!number)
    fail(name, word.empty() ? "has no number" : "is '" + shown_text(word) + "', no whole number",
         "write a whole number, or --set the variable that it comes from");
  return *number;
}

std::int64_t MegatronArguments::required(const std::string& name) const {
  if (has(name)) return number(name, 0);
  fail_input(place_, "has no " + spelled(name), is_recipe() ? how_to_add(name) : "add it");
}

std::string MegatronArguments::spelled(const std::string& name) const {
  if (const auto found = spelling_.find(name); found != spelling_.end()) return found->second;
  std::string flag = "--" + name;
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::string MegatronArguments::how_to_add(const std::string& name) const {
  if (!is_recipe()) return "add " + spelled(name) + " N to the file";
  return "give it: --set " + spelled(name) + "=N";
}

std::string MegatronArguments::word(const std::string& name, const std::string& absent) const {
  const Value* value = find(name);
  return value && !value->words.empty() ? value->words[0] : absent;
}

std::string MegatronArguments::choice(
    const std::string& name,
    const std::vector<std::pair<std::string, std::string>>& meanings) const {
  const std::string given = word(name, meanings.front().first);
  std::string words;
  for (const auto& [word, meaning] : meanings) {
    if (word == given) return meaning;
    if (!word.empty()) words += (words.empty() ? "" : ", ") + word;
  }
  fail(name, "is '" + shown_text(given) + "'", "known are " + words);
}

void MegatronArguments::fail(const std::string& name, const std::string& problem,
                             const std::string& remedy) const {
  const auto found = values_.find(name);
  if (found == values_.end()) fail_input(place_, name + " " + problem, remedy);
  fail_input(found->second.place, shown_text(found->second.name) + " " + problem, remedy);
}

std::vector<std::string> MegatronArguments::unread() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : values_)
    if (!read_.contains(name)) names.push_back(name);
  return names;
}

}  // namespace orrery
