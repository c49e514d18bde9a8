#pragma once

#include <memory>

#include "sim/engine/network_model.hpp"
#include "sim/engine/simulation.hpp"
#include "sim/engine/task_graph.hpp"

namespace orrery {

/// The network model of SimGrid on the links of `topology`, which must outlive it. At most one may
/// exist in a process. Errors: std::runtime_error if sim/engine/simgrid's library is missing.
std::unique_ptr<NetworkModel> simgrid_network(const Topology& topology);

/// The times of all tasks of `graph`, simulated by SimGrid alone as a graph of its Exec and Comm
/// activities. It does not use Simulation: a reference for tests of small graphs.
Timeline simgrid_timeline(const TaskGraph& graph, const Topology& topology);

}  // namespace orrery
