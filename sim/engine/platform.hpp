#pragma once

#include <functional>
#include <vector>

#include "sim/cluster/topology.hpp"
#include "sim/core/units.hpp"
#include "sim/engine/simgrid/fluid_network.hpp"
#include "sim/engine/task.hpp"

namespace orrery {

/// SimGrid, loaded when something first asks for it. One exists in a process.
class Platform {
 public:
  /// Loads it where nobody did. Throws std::runtime_error where its library is missing.
  static Platform& instance();
  /// Whether its clock has moved and cannot be set back, so that later runs do not begin at zero.
  static bool is_late();

  /// For a run over these links, also those that `topology` numbers later. It must outlive the run.
  void use_links(const Topology& topology);

  double now() const { return network_.now(); }
  void timer(Seconds duration, std::function<void()> done);
  void flow(const Flow& flow, std::function<void()> done);
  /// Returns when nothing is pending.
  void run() { network_.run(); }

 private:
  explicit Platform(FluidNetwork& network) : network_{network} {}

  FluidNetwork& network_;
  const Topology* topology_ = nullptr;
  std::vector<FluidNetwork::Use> way_;   // Of the flow that begins.
  std::size_t begun_ = 0, arrived_ = 0;  // Flows of this run.
};

}  // namespace orrery
