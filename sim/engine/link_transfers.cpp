#include "sim/engine/link_transfers.hpp"

#include <cassert>
#include <limits>

namespace orrery {

LinkTransfers::LinkTransfers(const Topology& topology)
    : topology_{topology},
      // All are shared out here, so that none is handed over.
      wires_{topology, calendar_, std::numeric_limits<std::size_t>::max(),
             [](std::size_t, double) { assert(false); }} {}

std::uint32_t LinkTransfers::start(const Flows& flows, double scale, Seconds now) {
  assert(!flows.empty());
  if (under_way_ == 0) {
    assert(calendar_.empty());
    origin_ = now;
    now_ = {};
  } else {
    now_ = std::max(now_, Ticks::nearest(std::max(Seconds{}, now - origin_)));
  }
  wires_.learn_links(topology_);
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(transfers_.size()));
    transfers_.emplace_back();
  }
  const std::uint32_t number = free_.back();
  free_.pop_back();
  transfers_[number] = {flows, flows.size()};
  ++under_way_;
  for (const Flow& flow : transfers_[number].flows) {
    assert(scale * flow.bytes.si() > 0.0);
    wires_.start(TaskId{static_cast<std::int32_t>(number)}, flow, scale * flow.bytes.si(), now_);
  }
  return number;
}

Seconds LinkTransfers::next() const {
  return calendar_.empty() ? never : outside(calendar_.next_time());
}

const std::vector<std::uint32_t>& LinkTransfers::advance(Seconds now) {
  complete_.clear();
  while (!calendar_.empty() && outside(calendar_.next_time()) <= now) {
    const Calendar::Event event = calendar_.take();
    if (!wires_.arrives_at(event.of, event.time)) continue;
    now_ = std::max(now_, event.time);
    const auto number = static_cast<std::uint32_t>(wires_.arrive(event.of, now_).value);
    if (--transfers_[number].left > 0) continue;
    complete_.push_back(number);
    free_.push_back(number);
    --under_way_;
  }
  if (under_way_ == 0) calendar_ = {};  // What is left are times that have changed since.
  return complete_;
}

}  // namespace orrery
