#pragma once

#include <cstdint>

#include "sim/core/ids.hpp"

namespace orrery {

/// What tells two flows apart when a switch picks one of several equal ways.
struct FlowKey {
  std::uint64_t seed = 0;
  Rank from;
  Rank to;
  int channel = 0;
};

/// One step of SplitMix64, a bijection of 64-bit words that changes about half of the bits with
/// each bit of its argument. Constants: Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014.
constexpr std::uint64_t mix(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/// Which of `ways` equal ways, in the order of the next switches, a flow takes at the switch that
/// lies `hop` links from its first. Switches differ in their hash, as seeded hardware does: else a
/// second tier would only see flows that the first sorted alike, and leave ways unused.
constexpr int ecmp_choice(const FlowKey& flow, int hop, int ways) {
  std::uint64_t hash = mix(flow.seed);
  for (const int word : {flow.from.value, flow.to.value, flow.channel, hop})
    hash = mix(hash ^ static_cast<std::uint32_t>(word));
  return static_cast<int>(hash % static_cast<std::uint64_t>(ways));
}

}  // namespace orrery
