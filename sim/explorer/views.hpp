#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "sim/layers/routed_loads.hpp"
#include "sim/plan/scenario.hpp"
#include "sim/training/estimate.hpp"

namespace orrery {

/// A line of JSON; invalid UTF-8 is replaced.
std::string line_of(const nlohmann::ordered_json& json);

/// Expert load of a step, a line of JSON:
///
///     {"experts" (of a layer; 0: the model has none), "per_token", "even" (nothing was sampled:
///      all have the mean, and no list follows), "routing", "layers": [3, 4, ...] (of the model,
///      that have experts), "ranks" (of an expert group), "micro_batches", "groups" (that were
///      sampled or looked up), "mean_rows" (of a rank in a layer and micro-batch),
///      "expert_over_mean": [layer][expert]  its share of all copies over an even one
///      "rank_over_mean": [layer][rank]      rows that it computes over the mean, on average
///      "rank_most_over_mean": [layer][rank] the same of its fullest micro-batch}
///
/// Copies and rows are those of RoutingReport: its hottest experts are the greatest of the first
/// list, and its worst rank is the greatest of the last.
std::string experts_view(const Scenario& scenario, const RoutedLoads& loads);

/// Ranks whose curves are sent.
inline constexpr std::size_t most_ranks_with_memory = 64;

/// Memory of simulated ranks over the step (training/memory_over_time.hpp), a line of JSON:
///
///     {"step_ns", "capacity_bytes", "simulated" (ranks; more than in "ranks" if all would be
///      too many), "ranks": [{"rank", "stage", "ranks" (of its class), "weights_bytes",
///      "gradients_bytes", "optimizer_bytes", "other_bytes", "peak_bytes", "peak_ns",
///      "counted_bytes" (the peak of `orrery estimate --json`),
///      "time_ns": [...], "kept_bytes": [...], "working_bytes": [...]  (corners of the curve;
///                                                the last is empty if all values are 0)
///      "held": [microbatch, chunk, taken from, to, given back from, to, bytes, ...]}]}
/// `most_ranks`: limit of ranks with curves, from 1.
std::string memory_view(const Estimate& answer, const RoutedLoads& loads,
                        std::size_t most_ranks = most_ranks_with_memory);

}  // namespace orrery
