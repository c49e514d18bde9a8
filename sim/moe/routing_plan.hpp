#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/json_value.hpp"
#include "sim/model/model.hpp"
#include "sim/moe/routing_trace.hpp"
#include "sim/moe/token_copies.hpp"

namespace orrery {

/// The distribution of a router's preferences over the experts.
enum class PopularityKind {
  uniform,    ///< All alike.
  in_turn,    ///< All alike, as EvenChoice::in_turn.
  zipf,       ///< The i-th expert's weight is i^-parameter.
  hot,        ///< One expert is visited by a share `parameter` of all tokens; the others are alike.
  power_law,  ///< Weights have the density x^-parameter, from 1 to 1000.
  spread      ///< Weights lie evenly from 1 + parameter to 1 - parameter.
};

/// True if all experts are alike.
bool is_even(PopularityKind kind);

struct Popularity {
  PopularityKind kind = PopularityKind::uniform;
  double parameter = 0.0;
};

/// The share of tokens that visit each expert, in descending order; the sum is per_token, and none
/// exceeds 1, as a token visits an expert once. The order of experts differs by layer.
std::vector<double> visit_shares(const Popularity& popularity, const Experts& experts);

/// The user's description of how tokens find their experts: workloads/routing/<name>.json.
struct RoutingPlan {
  std::string name = "uniform";
  /// Preferences of the router; each layer has its own order of the experts.
  Popularity popularity;
  /// Every token lands evenly: nothing is sampled, and micro-batches are alike. Only for uniform.
  bool even = true;
  std::shared_ptr<const RoutingTrace> trace;  ///< The source of all counts, if set.
  std::uint64_t seed = 1;
  bool identical_replicas = false;        ///< All data-parallel replicas sample the same tokens.
  std::optional<double> capacity_factor;  ///< Dropless if not set.
  bool pad_to_capacity = false;           ///< Experts compute their whole capacity.
  int redundant_experts = 0;              ///< Slots for further copies of experts.
  bool balanced_placement = false;  ///< Uses balanced_placement() by popularity or by the trace.

  /// Routes are samples of one distribution, not records, so that a step may be sampled.
  bool statistical() const { return !even && !trace; }
};

/// How an even router chooses the experts of a token, by the `routing` of a plan.
EvenChoice even_choice(const std::string& word);

/// Reads a name in workloads/routing, a path to such a file or to a trace (.jsonl, .csv), or a
/// shape in one word: "uniform", "round-robin", "zipf:1.2", "hot:0.9", "power-law:1.5", "aux-loss",
/// "bias". `expected` is checked for a trace. Errors (bad_input): unknown words, invalid exponents,
/// a trace that does not fit, padding without a capacity.
RoutingPlan read_routing(const std::string& word, const Place& at,
                         const TraceExpectation& expected = {});

/// Reads a document of schema "orrery.routing/1" (docs/explanation/moe.md). A trace that it names
/// lies in the same folder or below.
RoutingPlan parse_routing(const JsonValue& json, const TraceExpectation& expected = {});

}  // namespace orrery
