#pragma once

#include <functional>
#include <optional>

#include "sim/engine/simulation.hpp"
#include "sim/training/training_step.hpp"

namespace orrery {

/// A step of fewer micro-batches that is long enough to show how the whole one repeats itself.
struct Excerpt {
  int microbatches = 1;
  int period = 1;  ///< Micro-batches after which the schedule is at the same place again.
};

/// Excerpts of `plan` to try, shortest first; none of schedules that do not repeat themselves
/// (Schedule::recurrence), and none where the step is hardly longer than they are. Those that are
/// long enough to show cycles leave out whole cycles.
std::vector<Excerpt> excerpts(const Plan& plan);

/// What the micro-batches that `excerpt` leaves out of `plan` add to the step that `timeline` is
/// of, or nothing where that cannot be told.
///
/// Between warm-up and cool-down a step comes back to the same state after a cycle of one, two or
/// three periods of the schedule: every task of a cycle starts and ends one span of time after its
/// twin of the cycle before. Two such spans in a row are compared task by task, and with them what
/// was under way when they began. If all agree to the tick (ticks.hpp), the step with n cycles
/// more is this one with the span repeated n times: each task still starts when the last before it
/// ends, and flows that were on their way together are so again, at the same rates. So its makespan
/// is longer by n spans. Nothing is told of cycles that do not divide what the excerpt leaves out.
/// (For tasks of fixed length this is the cyclicity of max-plus linear systems: Baccelli et al.,
/// Synchronization and Linearity, 1992, theorem 3.112.)
std::optional<Seconds> added_by_the_rest(const TrainingStep& step, const Timeline& timeline,
                                         const Plan& plan, const Excerpt& excerpt);

}  // namespace orrery
