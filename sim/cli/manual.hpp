#pragma once

#include <string>
#include <vector>

#include "sim/cli/command.hpp"
#include "sim/cli/options.hpp"

namespace orrery {

/// A command's help, taken apart.
struct CommandPage {
  std::string name;                   ///< "search", or "sweep run".
  std::string summary;                ///< "": a smaller command.
  std::vector<std::string> synopsis;  ///< Lines, without "usage:".
  std::vector<std::string> text;      ///< Paragraphs; their lines may be indented.
  OptionTable table;
  std::vector<std::string> words;  ///< Names of smaller commands, or of arguments.
};

/// Asks `command` for help as a user does; nothing of it reaches stdout. `word`: the smaller
/// command that is meant; "": none.
CommandPage describe(const Command& command, const std::string& word = "");

/// The smaller commands of `page`, each with its page; none where its words are things.
std::vector<CommandPage> smaller_pages(const Command& command, const CommandPage& page);

/// The manual page, section 1 in man(7), of a command and its smaller commands.
std::string man_page(const Command& command);

/// The program's page: its commands, exit codes, files and environment.
std::string man_page_of_program();

}  // namespace orrery
