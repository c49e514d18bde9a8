#pragma once

#include "sim/cluster/topology.hpp"
#include "sim/engine/timeline.hpp"
#include "sim/training/result.hpp"
#include "sim/training/training_step.hpp"

namespace orrery {

/// Turns a timeline into the figures that people read, prices being off by `errors`.
/// `simulation_wall` is left to the caller.
Result summarize(const Scenario& scenario, const MemoryReport& memory, const TrainingStep& step,
                 const Timeline& timeline, const Topology& topology, const PriceErrors& errors,
                 const RoutedLoads& loads);

/// Where the time of each of `roles` goes. Every moment of the step is counted once: kernels first,
/// then what the rank waits for, in the order data, transfer, context, expert, tensor; idle
/// otherwise.
std::vector<Breakdown> break_down(const Scenario& scenario, const TrainingStep& step,
                                  const Timeline& timeline, const std::vector<int>& roles);

/// Of each stage the role whose compute stream is busy the longest.
std::vector<int> longest_computing_roles(const TrainingStep& step, const Timeline& timeline,
                                         int stages);

}  // namespace orrery
