#pragma once

#include "sim/cli/options.hpp"
#include "sim/reliability/training_run.hpp"

namespace orrery {

inline constexpr int most_spares = 1 << 16;

/// The options on failures, on the policy against them, and on how many runs are sampled.
struct RunOptions {
  std::string reliability = "default";
  std::optional<std::string> faults;  ///< Replayed.
  std::optional<int> servers;         ///< Size of the fleet that had them.
  std::optional<Seconds> refill;      ///< Over the profile's.
  RunPolicy policy;
  std::optional<BatchRamp> ramp;  ///< Empty: none. Nothing: that of the plan file.
  int replicates = RunQuestion{}.replicates;
  std::uint64_t seed = RunQuestion{}.seed;
};

/// --reliability, --faults, --checkpoint, --spares ...
void add_run_policy(Options& options, RunOptions& into);
/// --replicates and --seed.
void add_run_samples(Options& options, RunOptions& into);

/// The question about a plan's run, with 0 for its tokens. `plan_file`: --plan, whose ramp is taken
/// if no option gives one.
RunQuestion run_question(const RunOptions& run, const std::optional<std::string>& plan_file);
/// Replaces the question's profile by that of replayed faults, if there are any, for the units of
/// `scenario`'s system.
void take_profile_of_faults(RunQuestion& question, const Scenario& scenario);

/// "5%", and "5 %" as it is printed: 0.05.
double parse_percent(const std::string& text, const Place& at);

}  // namespace orrery
