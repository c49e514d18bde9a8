#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/cluster/topology.hpp"
#include "sim/core/units.hpp"
#include "sim/engine/network_model.hpp"

namespace orrery {

/// Transfers of several flows each that share a topology's links, for a simulation with time in
/// seconds (request traces last months). Ticks count from the first of the concurrent transfers, so
/// that precision is not lost late in a trace.
class Transfers {
 public:
  static constexpr Seconds never{1e300};

  /// `topology` is kept by reference.
  explicit Transfers(const Topology& topology, Simulator simulator = chosen_simulator());
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  /// Moves `scale` times the bytes of each flow, from `now` on, the last result of advance().
  /// Returns the transfer's number, which later ones may reuse when it is complete. Asserts that
  /// there are flows and that they have bytes.
  std::uint32_t start(const Flows& flows, double scale, Seconds now);
  /// Returns the first time up to `limit` at which transfers are complete, else `limit`.
  Seconds advance(Seconds limit);
  /// The transfers that are complete at that time.
  const std::vector<std::uint32_t>& complete() const { return complete_; }
  bool idle() const { return active_ == 0; }

 private:
  struct Transfer {
    Flows flows;
    std::size_t left = 0;
  };

  Seconds outside(Ticks time) const { return origin_ + time.seconds(); }

  EventOrder order_;
  std::unique_ptr<NetworkModel> network_;
  Seconds origin_;
  Ticks now_;
  std::size_t active_ = 0;
  std::vector<Transfer> transfers_;
  std::vector<std::uint32_t> free_, complete_;
};

}  // namespace orrery
