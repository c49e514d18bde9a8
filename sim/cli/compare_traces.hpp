#pragma once

#include "sim/cli/options.hpp"

namespace orrery {

/// --trace, --step and --names of `orrery compare`.
boost::program_options::options_description trace_options();

/// `orrery compare --trace FILE...`: the plan that `parsed` names, beside traces of its ranks.
/// `more`: traces after the first, which --trace names.
int compare_traces(const ParsedOptions& parsed, const std::vector<std::string>& more);

}  // namespace orrery
