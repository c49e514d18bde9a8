#pragma once

#include <chrono>

#include "sim/core/units.hpp"

namespace orrery {

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
