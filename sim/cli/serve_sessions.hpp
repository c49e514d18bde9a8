#pragma once

#include <optional>
#include <string>

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

}  // namespace orrery
