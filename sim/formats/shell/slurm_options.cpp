#include "sim/formats/shell/slurm_options.hpp"

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

}  // namespace orrery
