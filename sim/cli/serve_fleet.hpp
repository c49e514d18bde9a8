#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/cli/options.hpp"
#include "sim/cli/serve_traffic.hpp"
#include "sim/fleet/session_run.hpp"

namespace orrery {

/// The options on sessions of dependent turns.
struct SessionOptions {
  std::optional<std::string> file;
  std::string format;
  std::optional<std::int64_t> lanes;
  std::optional<double> rate;
  bool finds_lanes = false;
  std::optional<std::int64_t> warm_turns;
  std::optional<std::string> start_at;
  double think = 1.0;
  std::optional<std::string> duration, longest_wait;
  std::optional<std::int64_t> longest_context;
};
void add_sessions(Options& options, SessionOptions& into);

/// Replays the sessions of the options and prints the results.
int serve_sessions(const Options& options, const SessionOptions& sessions,
                   const TrafficOptions& traffic, const PricedServing& priced,
                   const Stopwatch& since);

/// The options on a load that changes and fleets that follow it.
struct ScaledOptions {
  std::optional<std::string> load;
  std::vector<std::string> scalers;
  std::optional<std::string> start, between_stages;
  std::int64_t samples = 1;
};
void add_scaled(Options& options, ScaledOptions& into);

/// Replays the load under each policy and prints the results.
int serve_scaled(const Options& options, const ScaledOptions& scaled, const TrafficOptions& traffic,
                 const PricedServing& priced, const Stopwatch& since);

}  // namespace orrery
