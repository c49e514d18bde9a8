#pragma once

#include "sim/base/core/units.hpp"

namespace orrery {

/// A simulated clock's smallest step: 2^-42 s, a quarter of a picosecond.
inline constexpr Seconds tick{0x1p-42};

/// The nearest whole number of ticks, of two the even one.
///
/// Whole ticks are added and subtracted without rounding, up to 2^53 of them (2,048 s). So what
/// begins later takes as long to the last bit, and what happens at one moment by two ways of adding
/// up happens at one moment: a step comes back to the same state exactly, or not at all.
constexpr Seconds in_ticks(Seconds time) {
  // Adding it leaves no bits for fractions of a tick: a double from 2^52 to 2^53 is whole. Times
  // longer than 2^51 ticks lose a bit more, which nobody will miss.
  constexpr double no_fractions = 0x1.8p52 * tick.si();
  return Seconds{(time.si() + no_fractions) - no_fractions};
}

}  // namespace orrery
