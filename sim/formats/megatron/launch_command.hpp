#pragma once

#include <string>
#include <vector>

#include "sim/formats/shell/launched_program.hpp"
#include "sim/formats/shell/shell_script.hpp"

namespace orrery {

/// The last command that trains; without one, what variables hold that look like arguments, or
/// words that begin with arguments. `notes` gets what was chosen.
LaunchCommand find_launch(const ShellScript& script, std::vector<std::string>& notes);

}  // namespace orrery
