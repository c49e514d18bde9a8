#pragma once

#include <string>

#include "sim/formats/shell/shell_syntax.hpp"

namespace orrery {

/// A word, with its assignment if it is NAME=value, NAME+=value or NAME[index]=value. An array has
/// no value yet: it begins behind the word.
ShellItem shell_item(WrittenWord word);

/// A shell script as Bash's grammar has it, a list of commands. `line`: that of its first line. A
/// comment that begins with #SBATCH is a command of that name. Accepts every text: what fits no
/// rule is a word of a command, and unclosed constructs end with the text.
ShellNode parse_shell(const std::string& text, std::size_t line = 0);

/// A word for ShellLexer's modes without the text around it.
WrittenWord shell_operand(const std::string& text, std::size_t line);
WrittenWord shell_document(const std::string& text, std::size_t line);

}  // namespace orrery
