#include "sim/engine/max_min_network.hpp"

#include <algorithm>
#include <cassert>
#include <limits>

#include "sim/engine/fused_task.hpp"

namespace orrery {

void MaxMinNetwork::learn_links() {
  const std::size_t known = links_.size();
  links_.resize(static_cast<std::size_t>(topology_.link_count()));
  for (std::size_t i = known; i < links_.size(); ++i)
    links_[i].capacity = topology_.link(LinkId{static_cast<int>(i)}).capacity.si();
}

void MaxMinNetwork::start(std::uint32_t sender, const Flow& flow, double bytes, Ticks now) {
  if (links_.size() < static_cast<std::size_t>(topology_.link_count())) learn_links();
  if (free_.size() == moving_.size()) arrivals_.clear();  // The times are outdated.
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(moving_.size()));
    moving_.emplace_back();
  }
  const std::uint32_t place = free_.back();
  free_.pop_back();
  Moving& moving = moving_[place];
  moving = {.flow = &flow, .sender = sender, .rest = bytes, .since = now};
  const bool alone = is_alone(flow, now);
  for (const LinkUse& use : flow.route) {
    std::vector<std::uint32_t>& flows = at(use).flows;
    if (flows.empty() || flows.back() != place) flows.push_back(place);
  }
  if (!alone) return change(flow.route, now);
  changed_at_ = now;
  set_rate(moving, isolated_rate_of(flow));
}

std::optional<NetworkModel::Arrival> MaxMinNetwork::advance(Ticks time, std::uint64_t order) {
  while (true) {
    const bool arrival_first =
        !arrivals_.empty() && (arrivals_.next().time < time ||
                               (arrivals_.next().time == time && arrivals_.next().order < order));
    if (!changed_.empty() && (arrival_first ? arrivals_.next().time : time) > changed_at_) {
      solve();
      continue;
    }
    if (!arrival_first) return std::nullopt;
    const auto [at, known, place] = arrivals_.pop();
    Moving& moving = moving_[place];
    if (moving.arrives == at) {
      const Arrival arrival{moving.sender, at};
      arrive(place, at);
      return arrival;
    }
    // The flow has slowed down since, or has arrived.
    if (moving.expected == at && moving.arrives != Ticks::never()) expect(moving);
  }
}

std::vector<double> MaxMinNetwork::rates() {
  if (!changed_.empty()) solve();
  std::vector<double> rates;
  for (const Moving& moving : moving_)
    if (moving.flow) rates.push_back(moving.rate);
  return rates;
}

// Flows that are arriving need no share any more.
bool MaxMinNetwork::is_alone(const Flow& flow, Ticks now) const {
  return std::all_of(flow.route.begin(), flow.route.end(), [&](const LinkUse& use) {
    const std::vector<std::uint32_t>& flows = links_[index(use.link)].flows;
    return std::all_of(flows.begin(), flows.end(),
                       [&](std::uint32_t other) { return moving_[other].is_arriving(now); });
  });
}

double MaxMinNetwork::isolated_rate_of(const Flow& flow) const {
  return isolated_rate(flow, [this](LinkId link) { return links_[index(link)].capacity; });
}

void MaxMinNetwork::change(const FlowRoute& route, Ticks now) {
  changed_at_ = now;
  for (const LinkUse& use : route)
    if (!at(use).flows.empty()) changed_.push_back(use.link);
}

void MaxMinNetwork::arrive(std::uint32_t place, Ticks now) {
  Moving& moving = moving_[place];
  const FlowRoute& route = moving.flow->route;
  for (const LinkUse& use : route) std::erase(at(use).flows, place);
  moving.flow = nullptr;
  moving.arrives = Ticks::never();
  free_.push_back(place);
  change(route, now);
}

void MaxMinNetwork::solve() {
  ++solutions_;
  for (const LinkId link : changed_)
    if (links_[index(link)].solution < solutions_) {
      connect(link);
      fill();
    }
  changed_.clear();
}

// Collects all flows that are connected to the link by links with several flows, and their links.
void MaxMinNetwork::connect(LinkId first) {
  connecting_.assign(1, first);
  connected_.clear();
  links_[index(first)].solution = solutions_;
  for (std::size_t next = 0; next < connecting_.size(); ++next)
    for (const std::uint32_t place : links_[index(connecting_[next])].flows) {
      Moving& moving = moving_[place];
      if (moving.solution == solutions_) continue;
      moving.solution = solutions_;
      moving.is_rising = !moving.is_arriving(changed_at_);
      if (!moving.is_rising) continue;
      connected_.push_back(place);
      for (const LinkUse& use : moving.flow->route)
        if (LinkState& link = at(use); link.solution < solutions_) {
          link.solution = solutions_;
          connecting_.push_back(use.link);
        }
    }
}

// Progressive filling of the connected flows.
void MaxMinNetwork::fill() {
  for (const LinkId id : connecting_) {
    LinkState& link = links_[index(id)];
    link.unused = link.capacity;
    link.rising = 0;
  }
  for (const std::uint32_t place : connected_)
    for (const LinkUse& use : moving_[place].flow->route) at(use).rising += use.times;
  by_own_rate_ = connected_;
  const auto own_rate = [this](std::uint32_t place) { return moving_[place].flow->rate.si(); };
  std::sort(by_own_rate_.begin(), by_own_rate_.end(),
            [&](std::uint32_t a, std::uint32_t b) { return own_rate(a) < own_rate(b); });
  // Links that appear fuller because of rounding count as equally full.
  constexpr double as_full = 1.0 + 1e-12;
  std::size_t slowest = 0;  // Index in by_own_rate_.
  for (std::size_t rising = connected_.size(); rising > 0; rising -= kept_.size()) {
    std::erase_if(connecting_, [this](LinkId id) { return links_[index(id)].rising == 0; });
    while (!moving_[by_own_rate_[slowest]].is_rising) ++slowest;
    double level = own_rate(by_own_rate_[slowest]);
    for (const LinkId id : connecting_)
      level = std::min(level, links_[index(id)].unused / links_[index(id)].rising);
    // All flows that keep this rate are found before the links change.
    kept_.clear();
    const auto keep = [&](std::uint32_t place) {
      if (!moving_[place].is_rising) return;
      moving_[place].is_rising = false;
      kept_.push_back(place);
    };
    for (std::size_t i = slowest;
         i < by_own_rate_.size() && own_rate(by_own_rate_[i]) <= level * as_full; ++i)
      keep(by_own_rate_[i]);
    for (const LinkId id : connecting_)
      if (const LinkState& link = links_[index(id)]; link.unused <= level * as_full * link.rising)
        for (const std::uint32_t place : link.flows) keep(place);
    for (const std::uint32_t place : kept_) {
      for (const LinkUse& use : moving_[place].flow->route) {
        at(use).rising -= use.times;
        at(use).unused = std::max(0.0, at(use).unused - use.times * level);
      }
      set_rate(moving_[place], level);
    }
  }
}

void MaxMinNetwork::set_rate(Moving& moving, double rate) {
  if (moving.rate == rate) return;
  const Ticks now = changed_at_;
  moving.rest = std::max(0.0, moving.left(now));
  moving.since = now;
  moving.rate = rate;
  moving.arrives = now + Ticks::nearest(Seconds{moving.rest / rate});
  // An event that is too early is moved at its time, as flows slow down and speed up repeatedly.
  if (moving.arrives < moving.expected) expect(moving);
}

void MaxMinNetwork::expect(Moving& moving) {
  moving.expected = moving.arrives;
  arrivals_.push(moving.arrives, order_.next(),
                 static_cast<std::uint32_t>(&moving - moving_.data()));
}

std::vector<double> max_min_rates(const std::vector<const Flow*>& flows, const Topology& topology) {
  EventOrder order;
  MaxMinNetwork network{topology, order};
  for (const Flow* flow : flows) network.start(0, *flow, 1.0, Ticks{});
  return network.rates();
}

}  // namespace orrery
