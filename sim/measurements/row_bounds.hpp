#pragma once

/// Bounds of what a row of a table may say: wide enough for any kernel, narrow enough to catch a
/// wrong unit.
namespace orrery::row_bounds {

constexpr double largest_size = 0x1p32;
constexpr double shortest_us = 0.01;
constexpr double longest_us = 1e9;

}  // namespace orrery::row_bounds
