#include "sim/engine/fused_task.hpp"

#include <algorithm>

namespace orrery {

BytesPerSecond isolated_rate(const Topology& topology, const Flow& flow) {
  return BytesPerSecond{
      isolated_rate(flow, [&](LinkId link) { return topology.link(link).capacity.si(); })};
}

FusedTask::FusedTask(std::vector<Phase> phases, const Topology& topology)
    : phases_{std::move(phases)} {
  begins_.reserve(phases_.size() + 1);
  begins_.push_back({});
  Flows known;
  Seconds moving;
  for (const Phase& phase : phases_) {
    if (!phase.flows.same(known)) {
      known = phase.flows;
      moving = {};
      for (const Flow& flow : known) {
        moving = std::max(moving, flow.bytes / isolated_rate(topology, flow));
        for (const LinkUse& use : flow.route)
          if (std::find(links_.begin(), links_.end(), use.link) == links_.end())
            links_.push_back(use.link);
      }
    }
    const Ticks in_turn = phase.before + Ticks::nearest(moving);
    begins_.push_back(begins_.back() + std::max(phase.concurrent, in_turn));
  }
}

bool FusedTask::has_disjoint_links(const Flows& flows) {
  std::vector<LinkId> seen;
  for (const Flow& flow : flows) {
    const std::size_t others = seen.size();
    for (const LinkUse& use : flow.route) {
      const auto end = seen.begin() + static_cast<std::ptrdiff_t>(others);
      if (std::find(seen.begin(), end, use.link) != end) return false;
      seen.push_back(use.link);
    }
  }
  return true;
}

std::size_t FusedTask::phase_at(Ticks since_start) const {
  const auto later = std::upper_bound(begins_.begin() + 1, begins_.end() - 1, since_start);
  return static_cast<std::size_t>(later - begins_.begin()) - 1;
}

}  // namespace orrery
