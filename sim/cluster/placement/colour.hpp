#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace orrery {

/// What tells two things apart in a partition refinement: equal colours, one class. 64-bit hashes
/// stand for the nested multisets of the textbook.
using Colour = std::uint64_t;
using Colours = std::vector<Colour>;

/// The finaliser of splitmix64 (Steele et al., OOPSLA 2014) over a running sum.
inline Colour mix(Colour seed, Colour value) {
  Colour z = seed * 0x9E3779B97F4A7C15u + value + 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/// How many classes there are.
inline std::size_t distinct(Colours colours) {
  std::sort(colours.begin(), colours.end());
  return static_cast<std::size_t>(std::unique(colours.begin(), colours.end()) - colours.begin());
}

}  // namespace orrery
