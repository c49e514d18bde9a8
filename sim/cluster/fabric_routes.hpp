#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/cluster/fabric_plan.hpp"
#include "sim/core/units.hpp"

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

/// Ways between switches over the wires that are not down. A way is one of the shortest that goes
/// up before it goes down (in a dragonfly or an explicit fabric no wire is up or down, and any
/// shortest way will do); which one, each switch picks by hash among the next switches, as ECMP
/// does. The search runs once for each switch that is a way's end; one thread at a time.
class FabricRoutes {
 public:
  explicit FabricRoutes(const FabricPlan& plan);
  FabricRoutes(FabricRoutes&&) noexcept;
  FabricRoutes& operator=(FabricRoutes&&) noexcept;
  ~FabricRoutes();

  /// Wires on the way, or -1 where there is none.
  int distance(int from, int to);
  /// The same for every switch as start, by switch.
  std::vector<int> distances(int to);
  /// Indices into the plan's wires, in order. Asserts that there is a way.
  std::vector<int> path(int from, int to, const FlowKey& flow);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace orrery
