#include "sim/import/megatron/launch_command.hpp"

#include <algorithm>

#include "sim/base/text/text_file.hpp"
#include "sim/import/shell/slurm_options.hpp"

namespace orrery {
namespace {

using Words = std::vector<ShellWord>;

constexpr int most_gpus = 1 << 24;

bool is_flag(const std::string& word) { return word.size() > 2 && word.starts_with("--"); }

bool has_flag(const Words& words, std::initializer_list<const char*> flags) {
  return std::any_of(words.begin(), words.end(), [&](const ShellWord& word) {
    return std::any_of(flags.begin(), flags.end(), [&](const std::string& flag) {
      return word.text == flag || word.text.starts_with(flag + "=");
    });
  });
}

// What a run of Megatron-LM has, of which the first alone describes a model.
bool describes_model(const Words& words) {
  return has_flag(words, {"--num-layers", "--hidden-size", "--hybrid-layer-pattern"});
}
bool describes_run(const Words& words) {
  return describes_model(words) ||
         has_flag(words, {"--tensor-model-parallel-size", "--pipeline-model-parallel-size",
                          "--micro-batch-size"});
}

// The word behind `-m` that is no launcher's: a module that is started as a program.
Words::const_iterator module_of(const Words& command) {
  for (auto word = command.begin(); word != command.end() && word + 1 != command.end(); ++word)
    if (word->text == "-m" && !(word + 1)->text.starts_with("torch.")) return word + 1;
  return command.end();
}

LaunchCommand launch_of(const Words& command) {
  LaunchCommand launch;
  auto program = std::find_if(command.begin(), command.end(), [](const ShellWord& word) {
    return word.text.ends_with(".py") && !word.text.starts_with('-');
  });
  if (program == command.end()) program = module_of(command);
  if (program == command.end()) {
    launch.arguments = argument_words(command);
    launch.launcher = launch.arguments;
    return launch;
  }
  launch.program = program->text.substr(program->text.rfind('/') + 1);
  launch.launcher.assign(command.begin(), program);
  launch.arguments = argument_words({program + 1, command.end()});
  return launch;
}

// A count behind one of the flags, or joined to it by '='; in torchrun's words _ is as good as -.
std::optional<int> count_behind(const Words& words, std::initializer_list<const char*> flags) {
  std::optional<int> count;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i].text;
    const std::size_t equals = word.find('=');
    std::string name = word.substr(0, equals);
    if (name.starts_with("--")) std::replace(name.begin() + 2, name.end(), '_', '-');
    if (std::find(flags.begin(), flags.end(), name) == flags.end()) continue;
    const std::string value = equals != word.npos    ? word.substr(equals + 1)
                              : i + 1 < words.size() ? words[i + 1].text
                                                     : "";
    count = plain_integer(value, most_gpus);
    if (count && *count == 0) count.reset();
  }
  return count;
}

std::optional<int> product(std::optional<int> a, std::optional<int> b) {
  if (!a || !b || std::int64_t{*a} * *b > most_gpus) return std::nullopt;
  return *a * *b;
}

std::optional<int> gpus_of(const Words& launcher, const SlurmOptions& slurm) {
  const bool torchrun = has_flag(launcher, {"--nproc_per_node", "--nproc-per-node"});
  if (torchrun) {
    auto each = count_behind(launcher, {"--nproc-per-node"});
    if (!each) each = slurm.gpus_per_node;  // "gpu" and "auto": all that the node has.
    // torchrun starts one node unless it is told.
    const bool says_nodes = has_flag(launcher, {"--nnodes"});
    return product(each, says_nodes ? count_behind(launcher, {"--nnodes"}) : std::optional{1});
  }
  if (has_flag(launcher, {"--num_gpus", "--num_nodes"}))  // deepspeed's
    return product(count_behind(launcher, {"--num-gpus"}),
                   has_flag(launcher, {"--num_nodes"}) ? count_behind(launcher, {"--num-nodes"})
                                                       : std::optional{1});
  if (const auto ranks = count_behind(launcher, {"-np", "--np"})) return ranks;  // mpirun's
  if (slurm.tasks_per_node && slurm.nodes) return product(slurm.nodes, slurm.tasks_per_node);
  if (slurm.tasks) return slurm.tasks;
  if (slurm.gpus) return slurm.gpus;
  return product(slurm.nodes, slurm.gpus_per_node);
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
                     [](const ShellWord& word) { return is_flag(word.text); }))
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

std::vector<ShellWord> argument_words(const std::vector<ShellWord>& words) {
  Words split;
  for (const ShellWord& word : words) {
    const std::string_view text = trimmed(word.text);
    if (!text.starts_with("-") || text.find_first_of(" \n\t") == text.npos) {
      split.push_back(word);
      continue;
    }
    for (const std::string_view part : words_of(text))
      split.push_back({std::string{part}, word.line, word.file});
  }
  return split;
}

LaunchCommand find_launch(const ShellScript& script, std::vector<std::string>& notes) {
  LaunchCommand chosen;
  SlurmOptions slurm;
  int trainings = 0;
  for (const auto& command : script.commands) {
    if (is_slurm_command(command[0].text)) slurm.read(command);
    LaunchCommand launch = launch_of(command);
    if (!describes_run(launch.arguments)) {
      // Flags that lie in lines of their own, without a program.
      const bool is_bare = launch.program.empty() && is_flag(command[0].text);
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
    launch.gpus = gpus_of(launch.launcher, slurm);
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
      chosen.gpus = gpus_of({}, slurm);
    }
  }
  if (!chosen.gpus) chosen.gpus = gpus_of(chosen.launcher, slurm);
  return chosen;
}

}  // namespace orrery
