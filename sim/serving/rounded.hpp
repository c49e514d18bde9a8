#pragma once

#include <cmath>
#include <cstdint>

#include "sim/core/units.hpp"

namespace orrery {

/// What answers in JSON print: six decimals, and whole bytes.
inline double rounded(double value) { return static_cast<double>(std::llround(value * 1e6)) / 1e6; }
inline std::int64_t whole(Bytes bytes) { return std::llround(bytes.si()); }

}  // namespace orrery
