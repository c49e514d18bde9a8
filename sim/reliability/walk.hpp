#pragma once

#include "sim/reliability/walk_setup.hpp"

namespace orrery {

/// One run from its first step to its last checkpoint, through the failures of a source.
///
/// A failure stops the job at once. It is detected; where a unit failed a spare takes its place,
/// or the job waits for one; then everything starts, reads the newest checkpoint that the failure
/// left, and goes on. A failure in between makes all this begin anew. An elastic job goes on
/// without the replicas whose units are in repair, and stands only while its communicators are
/// built anew; where the replicas hold all that was lost, it does not fall back.
///
/// Where failures are of a fleet, `setup.fleet`, the job and its spares are some of its units, and
/// spares fail as well.
RunTally walk(const WalkSetup& setup, FailureSource&& failures);

}  // namespace orrery
