#pragma once

#include <string>
#include <vector>

#include "sim/model/model.hpp"

namespace orrery {

/// "sequences of 4,096 tokens as in pre-training": how long sequences are where the user did not
/// say, and where that comes from.
std::string usual_sequence_text(const Model& model);

/// What several plans have in common, as the head of an answer about them: what first, then items
/// in lines of a terminal's width.
std::string run_heading(const std::string& what, const std::vector<std::string>& items);

}  // namespace orrery
