#pragma once

#include <string>
#include <vector>

#include "sim/search/single_changes.hpp"

namespace orrery {

/// A line a change: its flag, the step with it, and how much less that is. Ties are marked.
std::string changes_text(const std::vector<SingleChange>& changes);

}  // namespace orrery
