#pragma once

#include <string>

#include "sim/layers/routed_loads.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {

/// Where the tokens of a step go, a line of JSON:
///
///     {"experts" (of a layer; 0: the model has none), "per_token", "even" (nothing was drawn: all
///      have the mean, and no list follows), "routing", "layers": [3, 4, ...] (of the model, that
///      have experts), "ranks" (of an expert group), "micro_batches", "groups" (that were drawn or
///      looked up), "mean_rows" (of a rank in a layer and micro-batch),
///      "expert_over_mean": [layer][expert]  its share of all copies over an even one
///      "rank_over_mean": [layer][rank]      rows that it computes over the mean, on average
///      "rank_most_over_mean": [layer][rank] the same of its fullest micro-batch}
///
/// Copies and rows are those of RoutingReport: its hottest experts are the greatest of the first
/// list, and its worst rank is the greatest of the last.
std::string experts_view(const Scenario& scenario, const RoutedLoads& loads);

}  // namespace orrery
