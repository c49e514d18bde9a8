#pragma once

#include <string>

#include "sim/cluster/system.hpp"
#include "sim/cluster/topology.hpp"

namespace orrery {

/// A diagram of one node and of the fabric for the topology's number of GPUs, with the fabric's
/// figures: bisection, longest route, cables by kind. Equal parts appear once.
std::string topology_text(const System& system, const Topology& topology);

/// The cluster as a Graphviz graph, for `dot -Tsvg`: node 0 with its GPUs and NICs, the other nodes
/// as boxes, every switch and every cable with its bandwidth. Dashed: down.
std::string topology_dot(const System& system, const Topology& topology);

}  // namespace orrery
