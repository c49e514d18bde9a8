#pragma once

#include <string>
#include <vector>

namespace orrery {

/// Keys of a system, a GPU and a fabric whose value is a figure with a source; a plain one is the
/// user's own.
const std::vector<std::string>& figures_of_a_machine();

}  // namespace orrery
