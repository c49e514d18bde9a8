#include "sim/formats/shell/launched_program.hpp"

#include <algorithm>

#include "sim/core/text_file.hpp"

namespace orrery {
namespace {

struct Option {
  const char* name;
  const char* letter;
  std::optional<int> SlurmOptions::*count;
};
constexpr Option options[] = {
    {"--nodes", "-N", &SlurmOptions::nodes},
    {"--ntasks", "-n", &SlurmOptions::tasks},
    {"--ntasks-per-node", "", &SlurmOptions::tasks_per_node},
    {"--tasks-per-node", "", &SlurmOptions::tasks_per_node},
    {"--gpus", "-G", &SlurmOptions::gpus},
    {"--gpus-per-node", "", &SlurmOptions::gpus_per_node},
    {"--gres", "", &SlurmOptions::gpus_per_node},
};

// "4", "4-4" (fewest and most), "h100:8", "gpu:8", "gpu:h100:8".
std::optional<int> count_of(const std::string& text) {
  const std::string last = text.substr(text.rfind(':') + 1);
  return plain_integer(last.substr(0, last.find('-')), 1 << 20);
}

}  // namespace

bool is_slurm_command(const std::string& word) {
  static const char* const names[] = {"#SBATCH", "sbatch", "srun", "salloc"};
  const std::string name = word.substr(word.rfind('/') + 1);
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

void SlurmOptions::read(const std::vector<ShellWord>& command) {
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string& word = command[i].text;
    const std::size_t equals = word.find('=');
    for (const Option& option : options) {
      const std::string letter = option.letter;
      std::string value;
      if (word.substr(0, equals) == option.name)
        value = equals != word.npos      ? word.substr(equals + 1)
                : i + 1 < command.size() ? command[i + 1].text
                                         : "";
      else if (!letter.empty() && word == letter && i + 1 < command.size())
        value = command[i + 1].text;
      else if (!letter.empty() && word.starts_with(letter) && word.size() > 2)
        value = word.substr(2);
      if (const auto count = count_of(value); count && *count > 0) this->*option.count = count;
    }
  }
}

std::vector<std::pair<std::string, int>> SlurmOptions::variables() const {
  std::vector<std::pair<std::string, int>> made;
  const auto add = [&](const char* name, std::optional<int> value) {
    if (value) made.emplace_back(name, *value);
  };
  for (const char* name : {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"}) add(name, nodes);
  add("SLURM_NTASKS", tasks                     ? tasks
                      : nodes && tasks_per_node ? std::optional{*nodes * *tasks_per_node}
                                                : std::nullopt);
  add("SLURM_NTASKS_PER_NODE", tasks_per_node);
  add("SLURM_GPUS", gpus);
  for (const char* name : {"SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE"}) add(name, gpus_per_node);
  return made;
}

namespace {

using Words = std::vector<ShellWord>;

constexpr int most_launched_gpus = 1 << 24;

// The word behind `-m` that is no launcher's: a module that is started as a program.
Words::const_iterator module_of(const Words& command) {
  for (auto word = command.begin(); word != command.end() && word + 1 != command.end(); ++word)
    if (word->text == "-m" && !(word + 1)->text.starts_with("torch.")) return word + 1;
  return command.end();
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
    count = plain_integer(value, most_launched_gpus);
    if (count && *count == 0) count.reset();
  }
  return count;
}

std::optional<int> product(std::optional<int> a, std::optional<int> b) {
  if (!a || !b || std::int64_t{*a} * *b > most_launched_gpus) return std::nullopt;
  return *a * *b;
}

// deepspeed's "--include localhost:0,1@other:2,3": GPUs by their numbers.
std::optional<int> gpus_included(const Words& launcher) {
  for (std::size_t i = 0; i < launcher.size(); ++i) {
    const std::string& word = launcher[i].text;
    if (!word.starts_with("--include")) continue;
    const std::size_t equals = word.find('=');
    const std::string hosts = equals != word.npos       ? word.substr(equals + 1)
                              : i + 1 < launcher.size() ? launcher[i + 1].text
                                                        : "";
    if (hosts.find(':') == hosts.npos || hosts.find('$') != hosts.npos) return std::nullopt;
    const auto separators =
        std::count_if(hosts.begin(), hosts.end(), [](char c) { return c == ',' || c == '@'; });
    return static_cast<int>(std::min<std::ptrdiff_t>(separators, most_launched_gpus - 1)) + 1;
  }
  return std::nullopt;
}

}  // namespace

bool has_flag(const std::vector<ShellWord>& words, std::initializer_list<const char*> flags) {
  return std::any_of(words.begin(), words.end(), [&](const ShellWord& word) {
    return std::any_of(flags.begin(), flags.end(), [&](const std::string& flag) {
      return word.text == flag || word.text.starts_with(flag + "=");
    });
  });
}

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

LaunchCommand launch_of(const std::vector<ShellWord>& command) {
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

std::optional<int> launched_gpus(const std::vector<ShellWord>& launcher,
                                 const SlurmOptions& slurm) {
  const bool torchrun = has_flag(launcher, {"--nproc_per_node", "--nproc-per-node"});
  if (torchrun) {
    auto each = count_behind(launcher, {"--nproc-per-node"});
    if (!each) each = slurm.gpus_per_node;  // "gpu" and "auto": all that the node has.
    // torchrun starts one node by default.
    const bool says_nodes = has_flag(launcher, {"--nnodes"});
    return product(each, says_nodes ? count_behind(launcher, {"--nnodes"}) : std::optional{1});
  }
  if (has_flag(launcher, {"--num_processes"}))  // accelerate's, on all machines together
    return count_behind(launcher, {"--num-processes"});
  if (const auto listed = gpus_included(launcher)) return listed;
  if (has_flag(launcher, {"--num_gpus", "--num_nodes"}))  // deepspeed's
    return product(count_behind(launcher, {"--num-gpus"}),
                   has_flag(launcher, {"--num_nodes"}) ? count_behind(launcher, {"--num-nodes"})
                                                       : std::optional{1});
  if (const auto ranks = count_behind(launcher, {"-np", "--np"})) return ranks;  // mpirun's
  // A task starts one rank, or a program that starts one a GPU.
  const std::optional<int> asked =
      slurm.gpus ? slurm.gpus : product(slurm.nodes, slurm.gpus_per_node);
  const std::optional<int> tasks = slurm.tasks_per_node && slurm.nodes
                                       ? product(slurm.nodes, slurm.tasks_per_node)
                                       : slurm.tasks;
  return tasks && asked ? std::max(tasks, asked) : tasks ? tasks : asked;
}

}  // namespace orrery
