#pragma once

#include <vector>

#include "sim/cluster/topology.hpp"
#include "sim/engine/timeline.hpp"
#include "sim/training/step_range.hpp"
#include "sim/training/step_window.hpp"
#include "sim/training/training_step.hpp"

namespace orrery {

/// The chain of tasks that decided when the step ended, first to last: from the last to finish
/// back, each the one for which its successor waited the longest. A task starts when the last one
/// before it ends, so that their spans follow each other without gaps and add up to the makespan.
/// Of several that ended together the one that was added first. `end`: nothing counts that finished
/// later; the makespan, or the end of a step's window.
std::vector<TaskId> deciding_path(const TaskGraph& graph, const Timeline& timeline, Seconds end);

/// A task of a step's deciding path, and how long the step waits for it: from the end of the task
/// before it to its own. Lengths add up to the window's, but for tasks that end before it begins.
struct PathTask {
  TaskId id;
  Seconds length;
};
std::vector<PathTask> path_through(const TaskGraph& graph, const Timeline& timeline,
                                   const StepWindow& window);

/// The step time by what was priced along that chain. It is the gradient of the step time: where
/// all prices of a kind rise by a small share, the step gets longer by that share of their part.
/// Adds up to the step time.
///
/// A pass that is one task counts as PassCost::decisive; where it is drawn as a chain, its kernels
/// count in the mean proportions of the pass. A flow that shares its links counts with all the time
/// that it took.
TimeByPrice time_by_price(const Plan& plan, const TrainingStep& step,
                          const std::vector<PathTask>& path, const Topology& topology);

/// The range of a step of that length, its prices being off by `errors`.
StepRange range_of(const Scenario& scenario, const TrainingStep& step, Seconds length,
                   const std::vector<PathTask>& path, const Topology& topology,
                   const PriceErrors& errors);

}  // namespace orrery
