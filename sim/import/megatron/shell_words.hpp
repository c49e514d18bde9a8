#pragma once

#include <map>
#include <string>
#include <vector>

namespace orrery {

/// A word of a command, with its variables filled in. A variable that nobody sets stays as "$NAME".
struct ShellWord {
  std::string text;
  std::size_t line = 0;  ///< Where it was written, from 0: behind an array, the array's line.
};

/// What a shell script says without being run: assignments in the order in which they stand, and
/// the words of its commands with those filled in. Reads quotes, comments, continued lines, arrays,
/// $NAME, ${NAME}, ${NAME:-word} and ${NAME[@]}; leaves $(...), $((...)) and other expansions as
/// they are. Branches and loops are not followed: both sides of an `if` count, the last one wins.
struct ShellScript {
  std::vector<std::vector<ShellWord>> commands;
  std::vector<std::string> set_twice;  ///< Variables that were given different values.
};

/// `given` wins over what the script assigns. Errors (bad_input): variables that hold one another
/// until they fill the memory; nothing else, as text of any kind has some words.
ShellScript read_shell_script(const std::string& text, const std::string& file,
                              const std::map<std::string, std::string>& given);

}  // namespace orrery
