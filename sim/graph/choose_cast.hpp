#pragma once

#include "sim/graph/cast.hpp"

namespace orrery {

/// The ranks to simulate on `system`: every one, or as few as tell the same time. Where links are
/// uniform the placement decides (and, of slower GPUs, who waits for whom); elsewhere ranks, flows
/// and links are refined together.
Cast choose_cast(const System& system, const Placement& placement, const Topology& topology,
                 bool unfolded);

}  // namespace orrery
