#include "sim/engine/transfers.hpp"

#include <cassert>

namespace orrery {

Transfers::Transfers(const Topology& topology, Simulator simulator)
    : network_{make_network_model(simulator, topology, order_)} {}

std::uint32_t Transfers::start(const Flows& flows, double scale, Seconds now) {
  assert(!flows.empty());
  if (active_ == 0) {
    origin_ = now;
    now_ = {};
  } else {
    now_ = std::max(now_, Ticks::nearest(std::max(Seconds{}, now - origin_)));
  }
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(transfers_.size()));
    transfers_.emplace_back();
  }
  const std::uint32_t number = free_.back();
  free_.pop_back();
  transfers_[number] = {flows, flows.size()};
  ++active_;
  for (const Flow& flow : transfers_[number].flows) {
    assert(scale * flow.bytes.si() > 0.0);
    network_->start(number, flow, scale * flow.bytes.si(), now_);
  }
  return number;
}

Seconds Transfers::advance(Seconds limit) {
  complete_.clear();
  if (active_ == 0) return limit;
  Ticks until = limit == never ? Ticks::never() : Ticks::nearest(limit - origin_);
  if (until != Ticks::never() && outside(until) > limit) until = until - Ticks{1};
  while (const auto arrival = network_->advance(until, EventOrder::last)) {
    now_ = std::max(now_, arrival->time);
    const std::uint32_t number = arrival->sender;
    if (--transfers_[number].left > 0) continue;
    complete_.push_back(number);
    free_.push_back(number);
    if (--active_ == 0) break;
    until = std::min(until, arrival->time);  // Completes only other transfers at this time.
  }
  if (!complete_.empty()) return outside(now_);
  now_ = std::max(now_, until);
  return limit;
}

}  // namespace orrery
