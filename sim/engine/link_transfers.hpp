#pragma once

#include <cstdint>
#include <vector>

#include "sim/cluster/topology.hpp"
#include "sim/core/units.hpp"
#include "sim/engine/calendar.hpp"
#include "sim/engine/task.hpp"
#include "sim/engine/wires.hpp"

namespace orrery {

/// Transfers of several flows that share a topology's links, for whoever has a clock of its own. A
/// transfer whose flows meet nobody takes bytes / rate, and costs an entry in a calendar; where
/// some meet, Wires shares the links by max-min fairness, however many they are. SimGrid, which
/// knows no clock but its own, is the reference of the tests.
///
/// Times are doubles outside, and ticks inside since the first transfer of those under way: months
/// of a trace lose nothing.
class LinkTransfers {
 public:
  static constexpr Seconds never{1e300};

  /// Kept by reference.
  explicit LinkTransfers(const Topology& topology);
  LinkTransfers(const LinkTransfers&) = delete;
  LinkTransfers& operator=(const LinkTransfers&) = delete;

  /// Moves `scale` times the bytes of each flow, from `now` on, which is not before what advance()
  /// was told last. The number of the transfer, which later ones may have again when it is over.
  /// Asserts that there are flows and that they have bytes.
  std::uint32_t start(const Flows& flows, double scale, Seconds now);
  /// When something may happen next, if nothing starts before; never: none is under way.
  Seconds next() const;
  /// Until `now`, which is not after next(): all transfers that are complete then.
  const std::vector<std::uint32_t>& advance(Seconds now);

 private:
  struct Transfer {
    Flows flows;
    std::size_t left = 0;
  };

  Seconds outside(Ticks time) const { return origin_ + time.seconds(); }

  const Topology& topology_;
  Calendar calendar_;
  Wires wires_;
  Seconds origin_;
  Ticks now_;
  std::size_t under_way_ = 0;
  std::vector<Transfer> transfers_;
  std::vector<std::uint32_t> free_, complete_;
};

}  // namespace orrery
