#pragma once

#include "sim/cluster/topology/topology.hpp"
#include "sim/engine/graph/task_graph.hpp"
#include "sim/engine/graph/timeline.hpp"
#include "sim/engine/simulation/wires.hpp"

namespace orrery {

/// Runs a task graph: a task starts when the last task that it waits for finishes, and flows share
/// the topology's links by max-min fairness, a few that meet as Wires has it and more on SimGrid.
/// May be called again and again in one process, one at a time.
/// Throws std::logic_error naming the tasks that wait where not all can finish (a deadlock, which
/// verify() would have found).
Timeline execute(const TaskGraph& graph, const Topology& topology,
                 std::size_t most_shared_here = Wires::most_shared_here);

}  // namespace orrery
