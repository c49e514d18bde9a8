#pragma once

#include <chrono>
#include <cstddef>
#include <functional>

#include "sim/core/units.hpp"

namespace orrery {

/// How far something is that may take long. Kinds stand from the outside to the inside: of a
/// validation's cases each has a simulation's tasks, and of these some have flows.
struct Progress {
  enum class Of { plans, cases, sizes, keys, tasks, flows };
  Of of = Of::tasks;
  std::size_t done = 0;
  std::size_t all = 0;
};

/// Hears, while it lives, how far this process is; the innermost does where several live. Whoever
/// works long tells every millisecond or so, and need not know whether somebody listens.
class ProgressListener {
 public:
  explicit ProgressListener(std::function<void(const Progress&)> hear);
  ~ProgressListener();
  ProgressListener(const ProgressListener&) = delete;
  ProgressListener& operator=(const ProgressListener&) = delete;

  static void tell(const Progress& progress) {
    if (innermost_) innermost_->hear_(progress);
  }

 private:
  static inline ProgressListener* innermost_ = nullptr;
  ProgressListener* outer_;
  std::function<void(const Progress&)> hear_;
};

/// While one lives, Ctrl-C (SIGINT) does not end the program but run_tasks(), so that a command can
/// say what it has found. The second one ends the program at once.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  static bool asked();  ///< Whether Ctrl-C was pressed.
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
