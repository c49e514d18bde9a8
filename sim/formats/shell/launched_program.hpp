#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "sim/formats/shell/shell_values.hpp"

namespace orrery {

/// Nodes, tasks and GPUs in sbatch, srun and lines of #SBATCH (Slurm's manual of sbatch).
struct SlurmOptions {
  std::optional<int> nodes;
  std::optional<int> tasks, tasks_per_node;
  std::optional<int> gpus, gpus_per_node;

  void read(const std::vector<ShellWord>& command);  ///< Later words win.
  /// Variables that Slurm sets for the script by these options.
  std::vector<std::pair<std::string, int>> variables() const;
};

/// "#SBATCH", "sbatch", "srun" or "salloc", also with a path before it.
bool is_slurm_command(const std::string& word);

/// A command of a script that starts a program of Python on GPUs.
struct LaunchCommand {
  std::string program;               ///< "pretrain_gpt.py"; "": bare arguments.
  std::vector<ShellWord> launcher;   ///< Words before the program.
  std::vector<ShellWord> arguments;  ///< Words behind it.
  /// GPUs that it starts, by the launcher's words, else Slurm's.
  std::optional<int> gpus;
};

/// A command's program and the words before and behind it; `gpus` is left out.
LaunchCommand launch_of(const std::vector<ShellWord>& command);

/// GPUs that torchrun, accelerate, deepspeed or mpirun start by their words, else those that Slurm
/// was asked for. Nothing: not given.
std::optional<int> launched_gpus(const std::vector<ShellWord>& launcher, const SlurmOptions& slurm);

/// One of the flags is there, alone or joined to its value by '='.
bool has_flag(const std::vector<ShellWord>& words, std::initializer_list<const char*> flags);

/// Words behind "--flag" as argparse sees them: quoted words that hold several flags or a flag with
/// its value are split.
std::vector<ShellWord> argument_words(const std::vector<ShellWord>& words);

}  // namespace orrery
