#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/cluster/fabric_plan.hpp"
#include "sim/core/units.hpp"

namespace orrery {

/// The fields by which a switch distributes flows over equal routes.
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

/// The index of the next switch, among `choices` equal ones in order, that a flow takes `hop` links
/// from its first switch. Switches differ in their hash, as seeded hardware does: else a second
/// tier would only see flows that the first sorted alike, and leave routes unused.
constexpr int ecmp_choice(const FlowKey& flow, int hop, int choices) {
  std::uint64_t hash = mix(flow.seed);
  for (const int word : {flow.from.value, flow.to.value, flow.channel, hop})
    hash = mix(hash ^ static_cast<std::uint32_t>(word));
  return static_cast<int>(hash % static_cast<std::uint64_t>(choices));
}

/// Routes between switches over the wires that are not down. A route is one of the shortest that
/// goes up before it goes down (in a dragonfly or an explicit fabric no wire is up or down: any
/// shortest one); each switch picks by hash among the next switches, as ECMP does. The search runs
/// once for each destination switch. Not thread-safe.
class FabricRoutes {
 public:
  explicit FabricRoutes(const FabricPlan& plan);
  FabricRoutes(FabricRoutes&&) noexcept;
  FabricRoutes& operator=(FabricRoutes&&) noexcept;
  ~FabricRoutes();

  /// Wires on the route, or -1 without one.
  int distance(int from, int to);
  /// The distance from every switch, by switch.
  std::vector<int> distances(int to);
  /// Indices into the plan's wires, in order. Asserts that there is a route.
  std::vector<int> path(int from, int to, const FlowKey& flow);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace orrery
