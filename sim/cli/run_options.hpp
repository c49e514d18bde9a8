#pragma once

#include "sim/cli/options.hpp"
#include "sim/reliability/training_run.hpp"

namespace orrery {

inline constexpr int most_spares = 1 << 16;

/// What fails, and what the user does about it: --reliability, --faults, --checkpoint, --spares ...
boost::program_options::options_description run_policy_options();
/// How many runs are drawn, and which.
boost::program_options::options_description run_draw_options();

/// What is asked of the run of a plan, but for its tokens, which 0 stands for. The ramp is that of
/// the option or else of the plan file.
RunQuestion run_question(const ParsedOptions& parsed);
/// Where faults are replayed, their profile for the units of `scenario`'s system takes the place of
/// the question's.
void take_profile_of_faults(RunQuestion& question, const Scenario& scenario);

/// "5%", and "5 %" as it is printed: 0.05.
double parse_percent(const std::string& text, const std::string& option);

}  // namespace orrery
