#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "sim/core/json_value.hpp"
#include "sim/moe/popularity.hpp"
#include "sim/moe/trace.hpp"

namespace orrery {

/// What the user says about how tokens find their experts: workloads/routing/<name>.json.
struct RoutingPlan {
  std::string name = "uniform";
  /// Preferences of the router; each layer has its own order of the experts.
  Popularity popularity;
  /// Every token lands evenly: nothing is drawn, and all micro-batches are alike. Of uniform only.
  bool even = true;
  std::shared_ptr<const RoutingTrace> trace;  ///< Set: counts come from here instead.
  std::uint64_t seed = 1;
  bool identical_replicas = false;        ///< All data-parallel replicas draw the same tokens.
  std::optional<double> capacity_factor;  ///< Not set: dropless.
  bool pad_to_capacity = false;           ///< Experts compute their capacity, whatever they got.
  int redundant_experts = 0;              ///< Slots for further copies of experts.
  bool balanced_placement = false;        ///< balanced_placement() by popularity or by the trace.

  /// Whether a step may be sampled: draws of one distribution, not a record of what was.
  bool statistical() const { return !even && !trace; }
};

/// A name in workloads/routing, a path to such a file or to a trace (.jsonl, .csv), or a shape in
/// one word: "uniform", "zipf:1.2", "hot:0.9", "power-law:1.5", "aux-loss", "bias". `expected`
/// holds for a trace. Errors (bad_input): unknown words, exponents that are none, a trace that does
/// not fit, padding without a capacity.
RoutingPlan read_routing(const std::string& word, const Place& at,
                         const TraceExpectation& expected = {});

/// A document of schema "orrery.routing/1" (docs/ROUTING.md). A trace that it names lies beside it.
RoutingPlan parse_routing(const JsonValue& json, const TraceExpectation& expected = {});

}  // namespace orrery
