#pragma once

#include <string>
#include <vector>

namespace orrery {

/// Whether stdout should be coloured: a terminal, and neither NO_COLOR nor TERM=dumb; FORCE_COLOR
/// and CLICOLOR_FORCE win (no-color.org).
bool wants_colour();

/// "0,8,16-23" as numbers. Errors (bad_input) name --trace-ranks.
std::vector<int> parse_ranks(const std::string& text);

}  // namespace orrery
