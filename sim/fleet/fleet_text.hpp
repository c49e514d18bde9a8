#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/economics.hpp"
#include "sim/fleet/scaled_run.hpp"
#include "sim/fleet/session_run.hpp"

namespace orrery {

/// A replay of sessions with its inputs, as text and JSON print it.
struct SessionAnswer {
  SessionLoad load;
  std::optional<Slo> slo;
  SessionRun run;
  Economics economics;
  std::optional<int> lanes_tried;  ///< The lanes are the most that keep to the limits.
  std::int64_t cut_turns = 0;      ///< That --longest-context left out.
};

std::string session_text(const SessionAnswer& answer);
/// orrery.sessions/1. `wall_s`: time of the simulation; negative: none is printed.
std::string session_json(const SessionAnswer& answer, double wall_s);
/// A line of JSON for each turn: its session, lane, replica, lengths and times.
std::string turn_lines(const SessionAnswer& answer);

/// Policies on one load.
struct ScaledAnswer {
  LoadCurve curve;
  std::string file;
  RequestTraffic traffic;
  std::optional<Slo> slo;
  std::int64_t requests = 0;
  Seconds start;
  double capacity =
      0.0;  ///< Requests a second that a replica serves within the limits; 0: unknown.
  std::vector<ScaledRun> runs;  ///< A policy each.
  Economics economics;

  bool has_limits() const {
    return slo || std::any_of(traffic.classes.begin(), traffic.classes.end(),
                              [](const TrafficClass& one) { return one.of.slo.has_value(); });
  }
};

std::string scaled_text(const ScaledAnswer& answer);
/// orrery.fleet/1
std::string scaled_json(const ScaledAnswer& answer, double wall_s);

}  // namespace orrery
