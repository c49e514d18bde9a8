#pragma once

#include <map>

#include "sim/collectives/collective_program.hpp"
#include "sim/collectives/collective_time.hpp"
#include "sim/engine/timeline.hpp"

namespace orrery {

/// What the messages that are sent in one step did.
struct ProgramStep {
  int messages = 0;
  Bytes bytes;
  Seconds start;   ///< Of the first of them.
  Seconds finish;  ///< Of the last.
};

struct ProgramTime {
  Seconds time;
  std::map<int, ProgramStep> steps;  ///< By the sender's step.
  Engine engine = Engine::own;
};

/// Runs a user-defined collective on `system`, rank r on GPU r: one kernel is launched, and each
/// message takes one hop and then its bytes over the real route, at the rate of a send, less where
/// messages meet. Errors (infeasible): a deadlock, no way between two ranks, at `place`; more ranks
/// than GPUs.
ProgramTime run_program(const CollectiveProgram& program, const System& system, const Place& place,
                        Engine engine = Engine::own);

}  // namespace orrery
