#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/formats/shell/shell_values.hpp"

namespace orrery {

/// The output of a program that only looks at its words: dirname, basename, echo, expr and others.
/// Paths are taken as they are written. Nothing: another program.
std::optional<std::string> printed_by(const std::vector<std::string>& words);

/// A shell script's effect, without running anything: the words of the commands that it would
/// start, with variables, arithmetic, branches, loops and functions followed as Bash does. Branches
/// that only a program or a file could decide are not taken if they end the script; nor if they set
/// something, which is noted. An unset variable stays as "$NAME" in words, and is empty in
/// conditions.
struct ShellScript {
  std::vector<std::vector<ShellWord>> commands;  ///< "#SBATCH" begins those that Slurm reads.
  /// Final values, in the order in which they were first set.
  std::vector<std::pair<std::string, std::vector<ShellWord>>> variables;
  std::vector<std::string> files;  ///< Sources of words: the script, and the files that it reads.
  std::vector<std::string> notes;  ///< Parts that were not followed, and why.
  /// Files that `cat` or `tee` write from a here-document, by the path in the script.
  std::map<std::string, std::string> written;
};

/// The text of a file that a script reads with `source`, or starts with bash or sbatch; nothing: it
/// cannot be read.
using ShellFiles = std::function<std::optional<std::string>(const std::string& path)>;

/// `given` wins over what the script assigns; "1", "2", ... are the words of the call.
/// Errors (bad_input): variables that hold one another until they fill the memory; nothing else, as
/// text of any kind has some words.
ShellScript read_shell_script(const std::string& text, const std::string& file,
                              const std::map<std::string, std::string>& given,
                              const ShellFiles& files = {});

/// A word of a script that is nothing but the name of an unset variable, "$NAME". Bash drops it
/// where it is not in quotes.
bool is_unset_variable(const std::string& word);

}  // namespace orrery
