#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "sim/cluster/topology.hpp"
#include "sim/core/ticks.hpp"
#include "sim/engine/task_graph.hpp"

namespace orrery {

/// The rate of a flow without competition; all flows that it represents cross its links at once.
BytesPerSecond isolated_rate(const Topology& topology, const Flow& flow);
/// The same in bytes a second, for links of `capacity(LinkId)`.
template <class Capacity>
double isolated_rate(const Flow& flow, const Capacity& capacity) {
  double rate = flow.rate.si();
  for (const LinkUse& use : flow.route) {
    int times = 0;
    for (const LinkUse& other : flow.route) times += other.link == use.link ? other.times : 0;
    rate = std::min(rate, capacity(use.link) / times);
  }
  return rate;
}

/// A pass as one task that does not hide its collectives: consecutive phases, whose lengths are
/// known as long as no other flow is on their links. The engine steps through phases only while
/// there is one.
class FusedTask {
 public:
  struct Phase {
    Ticks concurrent;  ///< Kernels from its beginning; it lasts at least as long.
    Ticks before;      ///< Kernels and latency before the flows start.
    Flows flows;
  };

  FusedTask(std::vector<Phase> phases, const Topology& topology);

  /// No two flows of a phase share a link, so that they do not slow each other down.
  static bool has_disjoint_links(const Flows& flows);

  const std::vector<Phase>& phases() const { return phases_; }
  /// All links that it uses, without duplicates.
  const std::vector<LinkId>& links() const { return links_; }
  /// The beginning of a phase relative to the start, without delays; of phases().size(): the end.
  Ticks begin(std::size_t phase) const { return begins_[phase]; }
  Ticks length() const { return begins_.back(); }
  /// The phase that an undelayed task is in; after the end the last one.
  std::size_t phase_at(Ticks since_start) const;

 private:
  std::vector<Phase> phases_;
  std::vector<Ticks> begins_;
  std::vector<LinkId> links_;
};

}  // namespace orrery
