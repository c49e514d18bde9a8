#pragma once

#include <initializer_list>

#include "sim/formats/shell/shell_syntax.hpp"

namespace orrery {

/// It is a simple command of one of these names.
bool is_command(const ShellNode& node, std::initializer_list<const char*> names);

/// It ends with `exit` or `return`, if it is reached.
bool ends_script(const ShellNode& node);

/// It sets a variable, reads a file or has options: what only prints or looks does not matter.
bool matters(const ShellNode& node);

}  // namespace orrery
