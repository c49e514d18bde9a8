#pragma once

#include "sim/plan/cast.hpp"

namespace orrery {

/// The ranks to simulate on `system`: every one, or as few as tell the same time. A regular
/// placement on a uniform system has one role a stage; else ranks, flows and links are refined
/// together, and where that leaves too many roles on uniform links, loosely.
Cast choose_cast(const System& system, const Placement& placement, const Topology& topology,
                 bool unfolded);

}  // namespace orrery
