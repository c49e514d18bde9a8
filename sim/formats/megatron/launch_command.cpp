#include "sim/formats/megatron/launch_command.hpp"

#include <algorithm>

#include "sim/core/text_file.hpp"
#include "sim/formats/megatron/megatron_parts.hpp"
#include "sim/formats/settings/settings_files.hpp"
#include "sim/formats/shell/launched_program.hpp"
#include "sim/formats/shell/shell_lexer.hpp"

namespace orrery {
namespace {

using Words = std::vector<ShellWord>;

bool is_long_option(const std::string& word) { return word.size() > 2 && word.starts_with("--"); }

// Flags of a run of Megatron-LM; only the first group describes a model.
bool describes_model(const Words& words) {
  return has_flag(words, {"--num-layers", "--hidden-size", "--hybrid-layer-pattern"});
}
bool describes_run(const Words& words) {
  return describes_model(words) ||
         has_flag(words, {"--tensor-model-parallel-size", "--pipeline-model-parallel-size",
                          "--micro-batch-size"}) ||
         !swift_task(words).empty();
}

// Variables that hold arguments, without those that another holds.
Words arguments_in_variables(const ShellScript& script, std::string& names) {
  struct Held {
    std::string name, text;
    Words words;
  };
  std::vector<Held> all;
  for (const auto& [name, words] : script.variables) {
    Held held{name, "", argument_words(words)};
    if (std::none_of(held.words.begin(), held.words.end(),
                     [](const ShellWord& word) { return is_long_option(word.text); }))
      continue;
    for (const ShellWord& word : held.words) held.text += word.text + " ";
    all.push_back(std::move(held));
  }
  Words joined;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_held = std::any_of(all.begin(), all.end(), [&](const Held& other) {
      return &other != &all[i] && other.text.size() > all[i].text.size() &&
             other.text.find(all[i].text) != std::string::npos;
    });
    if (is_held) continue;
    names += (names.empty() ? "$" : " $") + all[i].name;
    joined.insert(joined.end(), all[i].words.begin(), all[i].words.end());
  }
  return joined;
}

}  // namespace

LaunchCommand find_launch(const ShellScript& script, std::vector<std::string>& notes) {
  LaunchCommand chosen;
  SlurmOptions slurm;
  int trainings = 0;
  for (const auto& command : script.commands) {
    if (is_slurm_command(command[0].text)) slurm.read(command);
    // Plug-ins of ms-swift (--external_plugins FILE.py) are no programs.
    LaunchCommand launch = launch_of(command);
    if (!swift_task(command).empty()) {
      launch = {};
      launch.launcher = launch.arguments = argument_words(command);
    }
    if (!describes_run(launch.arguments)) {
      // Flags that lie in lines of their own, without a program.
      const bool is_bare = launch.program.empty() && is_long_option(command[0].text);
      if (is_bare && chosen.program.empty()) {
        chosen.arguments.insert(chosen.arguments.end(), launch.arguments.begin(),
                                launch.arguments.end());
        chosen.launcher = chosen.arguments;
      }
      continue;
    }
    if (launch.program.empty() && chosen.program.empty()) {
      launch.arguments.insert(launch.arguments.begin(), chosen.arguments.begin(),
                              chosen.arguments.end());
      launch.launcher = launch.arguments;
    } else {
      ++trainings;
    }
    launch.gpus = launched_gpus(launch.launcher, slurm);
    chosen = std::move(launch);
  }
  if (trainings > 1)
    notes.push_back("the script starts " + std::to_string(trainings) +
                    " programs with such arguments; the last one counts");
  if (!describes_run(chosen.arguments)) {
    std::string names;
    Words held = arguments_in_variables(script, names);
    if (describes_run(held)) {
      notes.push_back("no command has the arguments; taken together are those of " + names);
      chosen.arguments = std::move(held);
      chosen.gpus = launched_gpus({}, slurm);
    }
  }
  if (!chosen.gpus) chosen.gpus = launched_gpus(chosen.launcher, slurm);
  return chosen;
}

namespace {

// Variables in it are left to the reader of the script.
std::string quoted(const std::string& text) {
  std::string made;
  for (const char c : text) {
    if (c == '"' || c == '\\' || c == '`') made += '\\';
    made += c == '\n' ? ' ' : c;
  }
  return "\"" + made + "\"";
}

// "[core_attn mlp]", in quotes or not, is several words; "[0]*3+[1]*58" is one.
bool is_list(const std::string& text) {
  return text.size() > 2 && text.find(']') + 1 == text.size() && text.starts_with('[');
}

std::string words_of_value(const SettingsTree& value) {
  std::string words;
  if (value.kind == SettingsTree::Kind::list) {
    for (const SettingsTree& item : value.items) words += " " + quoted(item.text);
    return words;
  }
  const std::string text{trimmed(value.text)};
  if (text == "true" || text == "True") return "";
  if (!is_list(text)) return " " + quoted(text);
  const std::string inside = text.substr(1, text.size() - 2);
  for (const std::string_view word : words_of(inside)) words += " " + quoted(std::string{word});
  return words;
}

bool is_off(const SettingsTree& value) {
  return value.is_null() || (!value.is_quoted && (value.text == "false" || value.text == "False"));
}

}  // namespace

bool is_model_config(const std::string& text) {
  return text.starts_with("MODEL_ARGS:") || text.find("\nMODEL_ARGS:") != std::string::npos;
}

ConfigScript script_of_config(const std::string& text, const std::string& file) {
  const SettingsTree config = read_yaml(text, file);
  ConfigScript script;
  const auto add = [&](const std::string& line, std::size_t of) {
    script.text += line;
    script.lines.push_back(of);
  };
  if (const SettingsTree* variables = config.find("ENV_VARS"))
    for (const auto& [name, value] : variables->entries)
      if (is_shell_name(name)) add("export " + name + "=" + quoted(value.text) + "\n", value.line);
  const SettingsTree* arguments = config.find("MODEL_ARGS");
  if (!arguments || arguments->kind != SettingsTree::Kind::map)
    fail_input({file, "MODEL_ARGS"}, "has no arguments", "write --num-layers: 32 and the like");
  const SettingsTree* mode = config.find("MODE");
  const bool generates = mode && mode->text == "inference";
  add(generates ? "inference.py" : "pretrain_gpt.py", arguments->line);
  for (const auto& [flag, value] : arguments->entries) {
    if (!flag.starts_with("--"))
      fail_input(line_place(file, value.line), "'" + flag + "' is no argument of Megatron-LM",
                 "import a recipe whose arguments begin with --");
    if (!is_off(value)) add(" \\\n" + flag + words_of_value(value), value.line);
  }
  script.text += "\n";
  return script;
}

}  // namespace orrery
