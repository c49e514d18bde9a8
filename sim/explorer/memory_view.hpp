#pragma once

#include <string>

#include "sim/layers/routed_loads.hpp"
#include "sim/training/estimate.hpp"

namespace orrery {

/// Ranks whose curves are sent.
inline constexpr std::size_t most_ranks_with_memory = 64;

/// Memory of simulated ranks over the step (training/memory_over_time.hpp), a line of JSON:
///
///     {"step_ns", "capacity_bytes", "simulated" (ranks; more than in "ranks" where all would be
///      too many), "ranks": [{"rank", "stage", "ranks" (that it stands for), "weights_bytes",
///      "gradients_bytes", "optimizer_bytes", "other_bytes", "peak_bytes", "peak_ns",
///      "counted_bytes" (the peak of `orrery estimate --json`),
///      "time_ns": [...], "kept_bytes": [...], "working_bytes": [...]  (corners of the curve;
///                                                the last is empty where nothing is held so)
///      "held": [microbatch, chunk, taken from, to, given back from, to, bytes, ...]}]}
/// `most_ranks`: whose curves are there, from 1.
std::string memory_view(const Estimate& answer, const RoutedLoads& loads,
                        std::size_t most_ranks = most_ranks_with_memory);

}  // namespace orrery
