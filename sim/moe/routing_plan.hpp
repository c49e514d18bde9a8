#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/json_value.hpp"
#include "sim/model/model.hpp"
#include "sim/moe/routing_trace.hpp"

namespace orrery {

/// How a router's preferences spread over the experts.
enum class PopularityKind {
  uniform,    ///< All alike.
  zipf,       ///< The i-th expert's weight is i^-parameter.
  hot,        ///< One expert is among those of `parameter` of all tokens; the others are alike.
  power_law,  ///< Weights have the density x^-parameter, from 1 to 1000.
  spread      ///< Weights lie evenly from 1 + parameter to 1 - parameter.
};

struct Popularity {
  PopularityKind kind = PopularityKind::uniform;
  double parameter = 0.0;
};

/// For each expert the share of tokens that visit it, falling; they sum to per_token, and none is
/// over 1: a token visits an expert once. Which expert has which share is the layer's.
std::vector<double> visit_shares(const Popularity& popularity, const Experts& experts);

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

/// A document of schema "orrery.routing/1" (docs/explanation/moe.md). A trace that it names lies
/// beside it.
RoutingPlan parse_routing(const JsonValue& json, const TraceExpectation& expected = {});

}  // namespace orrery
