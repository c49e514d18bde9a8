#pragma once

#include <memory>
#include <vector>

#include "sim/cluster/ecmp.hpp"
#include "sim/cluster/fabric_plan.hpp"

namespace orrery {

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
