#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/import/shell/shell_script.hpp"

namespace orrery {

/// The command of a script that starts a training with Megatron-LM.
struct LaunchCommand {
  std::string program;               ///< "pretrain_gpt.py"; "": bare arguments.
  std::vector<ShellWord> launcher;   ///< Words before the program.
  std::vector<ShellWord> arguments;  ///< Words behind it.
  /// GPUs that it starts, by torchrun's words, else mpirun's or Slurm's.
  std::optional<int> gpus;
};

/// The last command that trains; without one, what variables hold that look like arguments, or
/// words that begin with arguments. `notes` gets what was chosen.
LaunchCommand find_launch(const ShellScript& script, std::vector<std::string>& notes);

/// Words behind "--flag" as Megatron-LM's argparse sees them: quoted words that hold several flags
/// or a flag with its value are split.
std::vector<ShellWord> argument_words(const std::vector<ShellWord>& words);

}  // namespace orrery
