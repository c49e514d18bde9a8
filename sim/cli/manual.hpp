#pragma once

#include <string>
#include <vector>

#include "sim/cli/command.hpp"
#include "sim/cli/options.hpp"

namespace orrery {

/// What a command says of itself when it is asked for help, taken apart.
struct CommandPage {
  std::string name;                   ///< "search", or "sweep run".
  std::string summary;                ///< "" for a smaller command.
  std::vector<std::string> synopsis;  ///< Lines, without "usage:".
  std::vector<std::string> text;      ///< Paragraphs; their lines may be indented.
  OptionTable table;
  std::vector<std::string> words;  ///< Of smaller commands, or of things that it takes.
};

/// Asks `command` for help as a user does; nothing of it reaches stdout. `word`: the smaller
/// command that is meant; "": none.
CommandPage describe(const Command& command, const std::string& word = "");

/// The smaller commands of `page`, each with its page; none where its words are things.
std::vector<CommandPage> smaller_pages(const Command& command, const CommandPage& page);

/// A page of manual section 1, as man(7) has it, of a command and its smaller commands.
std::string man_page(const Command& command);

/// That of the program: its commands, exit codes, files and environment.
std::string man_page_of_program();

}  // namespace orrery
