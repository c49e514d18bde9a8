#pragma once

#include <chrono>
#include <cstddef>
#include <functional>

#include "sim/core/units.hpp"

namespace orrery {

/// The progress of long work. Kinds stand from the outside to the inside: each of a validation's
/// cases has a simulation's tasks, and some of these have flows.
struct Progress {
  enum class Of { plans, cases, sizes, keys, tasks, flows };
  Of of = Of::tasks;
  std::size_t done = 0;
  std::size_t all = 0;
};

/// Receives this process's progress while it lives; only the innermost of several does. Long work
/// reports every millisecond or so, whether or not there is a listener.
class ProgressListener {
 public:
  explicit ProgressListener(std::function<void(const Progress&)> listen);
  ~ProgressListener();
  ProgressListener(const ProgressListener&) = delete;
  ProgressListener& operator=(const ProgressListener&) = delete;

  static void report(const Progress& progress) {
    if (innermost_) innermost_->listen_(progress);
  }

 private:
  static inline ProgressListener* innermost_ = nullptr;
  ProgressListener* outer_;
  std::function<void(const Progress&)> listen_;
};

/// While one lives, Ctrl-C (SIGINT) does not end the program but run_tasks(), so that a command can
/// say what it has found. The second one ends the program at once.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  static bool requested();  ///< True once Ctrl-C was pressed.
};

/// The wall clock's time since it was made.
class Stopwatch {
 public:
  Seconds passed() const {
    return Seconds{std::chrono::duration<double>(Clock::now() - begin_).count()};
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace orrery
