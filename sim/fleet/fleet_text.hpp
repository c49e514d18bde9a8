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
  std::vector<ScaledRun> runs;         ///< A policy each, of the first sample.
  std::vector<PolicySamples> samples;  ///< Likewise, of all.
  Economics economics;

  bool has_limits() const {
    return slo || std::any_of(traffic.classes.begin(), traffic.classes.end(),
                              [](const TrafficClass& one) { return one.of.slo.has_value(); });
  }
};

/// A load of requests that machines are compared for.
struct ServingRequirement {
  Model model;
  ServingEngine engine;
  DeploymentRequest deployment;  ///< Of a replica; without tp the best one is found.
  LoadCurve curve;
  RequestTraffic traffic;  ///< Lengths, classes and seed.
  ServingLoad rules;       ///< With limits, and the share that must keep to them.
  std::vector<ScalerRequest> scalers;
  std::string start;  ///< As start_time() reads it.
  Place at;
};

/// The fleet of one machine that serves the load within the limits.
struct ServingOffer {
  System system;
  Economics economics;
  std::string refusal;             ///< "": it serves the load.
  int tp = 0;                      ///< Of a replica: the degree with the largest rate a GPU.
  int replicas = 0;                ///< Of the fixed fleet.
  double capacity = 0.0;           ///< Requests a second of a replica within the limits.
  std::optional<ScaledRun> fixed;  ///< The fleet for the peak.
  std::vector<ScaledRun> scaled;   ///< A policy each.

  /// The scaled fleet with the fewest GPU hours that keeps `share` within the limits.
  std::optional<std::size_t> best(double share) const;
  /// The price of the fixed fleet, in whole nodes or domains.
  Range to_buy() const;
};

/// The cheapest to rent first. A machine that cannot serve the load says why.
std::vector<ServingOffer> serving_offers(const ServingRequirement& asked,
                                         const std::vector<System>& systems,
                                         const std::string& economics);
std::string serving_offers_text(const ServingRequirement& asked,
                                const std::vector<ServingOffer>& offers);
/// orrery.serving-purchase/1
std::string serving_offers_json(const ServingRequirement& asked,
                                const std::vector<ServingOffer>& offers);

std::string scaled_text(const ScaledAnswer& answer);
/// orrery.fleet/1
std::string scaled_json(const ScaledAnswer& answer, double wall_s);

}  // namespace orrery
