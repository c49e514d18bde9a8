#pragma once

#include <string>

#include "sim/cluster/system.hpp"
#include "sim/cluster/topology.hpp"

namespace orrery {

/// The cluster as a Graphviz graph, for `dot -Tsvg`: node 0 with its GPUs and NICs, the other nodes
/// as boxes, every switch and every cable with its bandwidth. Dashed: down.
std::string topology_dot(const System& system, const Topology& topology);

}  // namespace orrery
