#pragma once

#include <functional>
#include <optional>

#include "sim/engine/simulation.hpp"
#include "sim/training/training_step.hpp"

namespace orrery {

/// A shorter step with enough micro-batches to reach the steady state of the whole one.
struct Excerpt {
  int microbatches = 1;
  int period = 1;  ///< Micro-batches of one period of the schedule.
};

/// Excerpts of `plan` to try, shortest first; empty if the schedule does not repeat itself
/// (Schedule::recurrence) or if the step is hardly longer. The longer excerpts leave out whole
/// cycles.
std::vector<Excerpt> excerpts(const Plan& plan);

/// Time that the micro-batches left out by `excerpt` add to the step of `timeline`; nothing if the
/// step does not repeat.
///
/// Between warm-up and cool-down a step returns to the same state after a cycle of one, two or
/// three periods of the schedule: every task of a cycle starts and ends one span of time after the
/// same task of the previous cycle. Two consecutive spans are compared task by task, including
/// tasks that already ran when they began. If all agree to the tick (ticks.hpp), a step with n more
/// cycles is this one with the span repeated n times: each task still starts when its last
/// predecessor ends, and the same flows share links at the same rates. Its makespan is longer by n
/// spans. Cycles that do not divide the left-out micro-batches are not used.
/// (For tasks of fixed length this is the cyclicity of max-plus linear systems: Baccelli et al.,
/// Synchronization and Linearity, 1992, theorem 3.112.)
std::optional<Seconds> added_by_the_rest(const TrainingStep& step, const Timeline& timeline,
                                         const Plan& plan, const Excerpt& excerpt);

}  // namespace orrery
