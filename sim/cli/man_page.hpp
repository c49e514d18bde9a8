#pragma once

#include <string>

#include "sim/cli/command_page.hpp"

namespace orrery {

/// A page of manual section 1, as man(7) has it, of a command and its smaller commands.
std::string man_page(const Command& command);

/// That of the program: its commands, exit codes, files and environment.
std::string man_page_of_program();

}  // namespace orrery
