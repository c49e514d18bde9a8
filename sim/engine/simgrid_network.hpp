#pragma once

#include <memory>

#include "sim/engine/network_model.hpp"
#include "sim/engine/simulation.hpp"
#include "sim/engine/task_graph.hpp"

namespace orrery {

/// SimGrid's network model on the links of `topology`, which must outlive it. One may exist in a
/// process at a time. Errors: std::runtime_error where sim/engine/simgrid's library is missing.
std::unique_ptr<NetworkModel> simgrid_network(const Topology& topology);

/// When each task of `graph` runs, simulated by SimGrid alone as a graph of its Exec and Comm
/// activities. Nothing of Simulation takes part: a reference for tests of small graphs.
Timeline simgrid_timeline(const TaskGraph& graph, const Topology& topology);

}  // namespace orrery
