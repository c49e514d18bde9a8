#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "sim/cluster/topology.hpp"
#include "sim/core/ticks.hpp"
#include "sim/engine/task_graph.hpp"

namespace orrery {

/// The rate of a flow whose links nobody else uses; all flows that it stands for cross them at
/// once.
BytesPerSecond rate_alone(const Topology& topology, const Flow& flow);
/// The same in bytes a second, of links of `capacity(LinkId)`.
template <class Capacity>
double rate_alone(const Flow& flow, const Capacity& capacity) {
  double rate = flow.rate.si();
  for (const LinkUse& use : flow.way) {
    int times = 0;
    for (const LinkUse& other : flow.way) times += other.link == use.link ? other.times : 0;
    rate = std::min(rate, capacity(use.link) / times);
  }
  return rate;
}

/// A pass as one task that does not hide its collectives: phases one after another, whose lengths
/// are known as long as nobody else is on their links. The engine steps through phases only while
/// somebody is.
class Chain {
 public:
  struct Phase {
    Ticks beside;  ///< Kernels that run from its beginning: it lasts at least so long.
    Ticks before;  ///< Kernels and latency before the flows start.
    Flows flows;
  };

  Chain(std::vector<Phase> phases, const Topology& topology);

  /// Whether no two flows of a phase share a link, so that they do not slow each other down.
  static bool keeps_apart(const Flows& flows);

  const std::vector<Phase>& phases() const { return phases_; }
  /// All links that it uses, each once.
  const std::vector<LinkId>& links() const { return links_; }
  /// When a phase begins if nobody delays the chain, from its start; of phases().size(): the end.
  Ticks begin(std::size_t phase) const { return begins_[phase]; }
  Ticks length() const { return begins_.back(); }
  /// The phase that an undelayed chain is in; after the end the last one.
  std::size_t phase_at(Ticks since_start) const;

 private:
  std::vector<Phase> phases_;
  std::vector<Ticks> begins_;
  std::vector<LinkId> links_;
};

}  // namespace orrery
