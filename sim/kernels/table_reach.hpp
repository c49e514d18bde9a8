#pragma once

#include <cmath>
#include <cstdint>

namespace orrery {

/// Beyond this factor outside the measured sizes nothing measured supports an answer.
constexpr std::int64_t table_reach = 4;

/// Datasheets round; 2 % is more than any two of them disagree.
inline bool is_same_figure(double a, double b) { return std::abs(a - b) <= 0.02 * b; }

}  // namespace orrery
