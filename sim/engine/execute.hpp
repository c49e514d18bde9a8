#pragma once

#include "sim/engine/simulation.hpp"

namespace orrery {

/// Runs a task graph that does not grow: the simplest simulation, which needs no driver.
inline Timeline execute(const TaskGraph& graph, const Topology& topology,
                        EngineChoice choice = {}) {
  return Simulation{graph, topology, choice}.run();
}

}  // namespace orrery
