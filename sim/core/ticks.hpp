#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <limits>

#include "sim/core/units.hpp"

namespace orrery {

/// A simulated time, from the run's beginning or a span of it, in whole ticks of 2^-42 s, a quarter
/// of a picosecond. Sixty-four bits hold 24 days of them.
///
/// Exact: sums, differences and comparisons of ticks. So what begins later takes as long to the
/// last bit, and what happens at one moment by two ways of adding up happens at one moment: a step
/// comes back to the same state exactly, or not at all.
///
/// Rounded: a duration, once, when it enters a simulation (nearest()), and the arrival of a flow,
/// whose rate is a double, each time that the rate changes. Where a simulation leaves ticks
/// (seconds()), up to 2^53 of them (2,048 s) are exact in a double, and longer times are rounded to
/// its 53 bits.
class Ticks {
 public:
  static constexpr double a_second = 0x1p42;

  constexpr Ticks() = default;
  constexpr explicit Ticks(std::int64_t count) : count_{count} {}

  /// The clock's end: all that would come later comes then (24 days).
  static constexpr Ticks end() { return Ticks{std::numeric_limits<std::int64_t>::max() - 1}; }
  /// After the end. Nothing may be added to it.
  static constexpr Ticks never() { return Ticks{std::numeric_limits<std::int64_t>::max()}; }

  /// The nearest whole number of ticks, of two the even one. `time` must not be negative.
  static constexpr Ticks nearest(Seconds time) {
    const double ticks = time.si() * a_second;
    // Adding it leaves no bits for fractions: a double from 2^52 to 2^53 is whole, and so is a
    // greater one.
    constexpr double no_fractions = 0x1p52;
    if (ticks < no_fractions)
      return Ticks{static_cast<std::int64_t>((ticks + no_fractions) - no_fractions)};
    return ticks < 0x1p63 ? std::min(Ticks{static_cast<std::int64_t>(ticks)}, end()) : end();
  }

  constexpr std::int64_t count() const { return count_; }
  constexpr Seconds seconds() const { return Seconds{static_cast<double>(count_) / a_second}; }

  constexpr auto operator<=>(const Ticks&) const = default;
  /// The sum is at most end().
  friend constexpr Ticks operator+(Ticks a, Ticks b) {
    std::int64_t sum = 0;
    return __builtin_add_overflow(a.count_, b.count_, &sum) ? end() : std::min(Ticks{sum}, end());
  }
  friend constexpr Ticks operator-(Ticks a, Ticks b) { return Ticks{a.count_ - b.count_}; }

 private:
  std::int64_t count_ = 0;
};

}  // namespace orrery
