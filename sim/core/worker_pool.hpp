#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "sim/core/units.hpp"

namespace orrery {

/// What a worker says about one task.
struct Answer {
  std::string bytes;
  /// This process must not work on: its simulation engine has run, so that the next result would
  /// depend on the last. A fresh one takes its place.
  bool spent = false;
};

/// What became of a task. Whatever happens to a worker is the outcome of the task that it was at.
struct Outcome {
  std::int64_t task = 0;
  std::string bytes;
  std::string failure;  ///< Why there is no answer: a signal, a limit, an exception. Empty: none.
  /// Of a failure: the machine's, such as a kill or a limit. The task may have an answer elsewhere,
  /// or later.
  bool stopped = false;
};

struct WorkerLimits {
  Seconds time;  ///< Wall clock a task may take; 0: any.
  Bytes memory;  ///< Address space of a worker; 0: any.
};

/// Works on tasks in `workers` processes, forked from this one when they are needed: what it has
/// read and built before is theirs as well, and what they do to it stays with them.
///
/// next     The next task, or nothing when there is none left. Called as far ahead of `deliver` as
///          keeps the workers busy: a few hundred tasks, whatever their number.
/// work     Runs in a worker.
/// deliver  Gets the outcomes in the order in which `next` gave the tasks, whatever the number of
///          workers, so that what it writes cannot depend on it. False ends the run early, and so
///          does Ctrl-C where an Interruption lives.
///
/// A worker that crashes, runs out of memory or time fails its task and is replaced; the tasks that
/// waited for it go to others. A task whose worker was killed gets another one twice. Workers end
/// with this process, also when it is killed, and leave signals that ask them to end to it.
void run_tasks(int workers, const WorkerLimits& limits,
               const std::function<std::optional<std::int64_t>()>& next,
               const std::function<Answer(std::int64_t)>& work,
               const std::function<bool(const Outcome&)>& deliver);

}  // namespace orrery
