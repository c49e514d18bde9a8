#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/formats/shell/shell_variables.hpp"

namespace orrery {

/// What sbatch, srun and lines of #SBATCH say of nodes, tasks and GPUs (Slurm's manual of sbatch).
struct SlurmOptions {
  std::optional<int> nodes;
  std::optional<int> tasks, tasks_per_node;
  std::optional<int> gpus, gpus_per_node;

  void read(const std::vector<ShellWord>& command);  ///< Later words win.
  /// Variables that Slurm sets for the script by what it was asked for.
  std::vector<std::pair<std::string, int>> variables() const;
};

/// "#SBATCH", "sbatch", "srun" or "salloc", also with a path before it.
bool is_slurm_command(const std::string& word);

}  // namespace orrery
