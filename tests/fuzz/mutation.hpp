#pragma once

#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/entry_points.hpp"

namespace orrery {

/// A text like `text`, changed here and there so that it keeps its shape: JSON stays JSON, a line
/// is taken away, repeated or replaced. Nothing where there is no such shape to keep. `words` are
/// what may be put in.
std::string changed_in_shape(const std::string& text, Shape shape,
                             const std::vector<std::string>& words, std::mt19937& random);

}  // namespace orrery
