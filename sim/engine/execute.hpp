#pragma once

#include "sim/graph/task_graph.hpp"
#include "sim/result/timeline.hpp"
#include "sim/topology/topology.hpp"

namespace orrery {

/// Runs a task graph on SimGrid: its clock, and its max-min sharing of the topology's links. A task
/// starts when the last task that it waits for finishes. May be called again and again in one
/// process, one at a time.
/// Throws std::logic_error naming the tasks that wait where not all can finish (a deadlock, which
/// verify() would have found).
Timeline execute(const TaskGraph& graph, const Topology& topology);

}  // namespace orrery
