#include "sim/formats/megatron/launch_command.hpp"

#include <algorithm>

#include "sim/formats/shell/slurm_options.hpp"

namespace orrery {
namespace {

using Words = std::vector<ShellWord>;

bool is_long_option(const std::string& word) { return word.size() > 2 && word.starts_with("--"); }

// What a run of Megatron-LM has, of which the first alone describes a model.
bool describes_model(const Words& words) {
  return has_flag(words, {"--num-layers", "--hidden-size", "--hybrid-layer-pattern"});
}
bool describes_run(const Words& words) {
  return describes_model(words) ||
         has_flag(words, {"--tensor-model-parallel-size", "--pipeline-model-parallel-size",
                          "--micro-batch-size"});
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
    LaunchCommand launch = launch_of(command);
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

}  // namespace orrery
