#include "sim/engine/wires.hpp"

#include <algorithm>
#include <limits>

#include "sim/engine/chain.hpp"

namespace orrery {

void Wires::start(TaskId task, const Flow& flow, double bytes, Ticks now) {
  const std::size_t self = place(task, flow, bytes, now);
  const bool alone = meets_nobody(flow, now);
  for (const LinkUse& use : flow.way) {
    std::vector<std::size_t>& flows = at(use).flows;
    if (flows.empty() || flows.back() != self) flows.push_back(self);
  }
  if (alone) return set_rate(moving_[self], this->alone(flow), now);
  join(self, now);
  if (joined_.size() <= most_ && !simgrid_has_some()) return share_out(now);
  for (std::size_t other : joined_) {
    Moving& moving = moving_[other];
    if (moving.handed_over) continue;
    moving.handed_over = true;
    moving.arrives = Ticks::never();
    hand_over_(other, moving.left(now));
  }
}

double Wires::alone(const Flow& flow) const {
  return rate_alone(flow, [this](LinkId link) { return links_[index(link)].capacity; });
}

bool Wires::arrives_at(std::size_t flow, Ticks time) {
  Moving& moving = moving_[flow];
  if (moving.arrives == time) return true;
  if (moving.expected == time && moving.arrives != Ticks::never()) expect(moving);
  return false;
}

TaskId Wires::arrive(std::size_t flow, Ticks now) {
  Moving& moving = moving_[flow];
  const TaskId task = moving.task;
  const Way& way = moving.flow->way;
  for (const LinkUse& use : way) std::erase(at(use).flows, flow);
  const bool handed_over = moving.handed_over;
  moving.arrives = Ticks::never();
  free_.push_back(flow);
  if (handed_over) return task;
  // Those that it leaves behind may rise. They need not be joined by other links any more.
  const std::size_t before = searches_;
  for (const LinkUse& use : way)
    if (const LinkState& link = at(use); !link.flows.empty() && link.seen <= before) {
      join(link.flows.front(), now);
      if (!simgrid_has_some()) share_out(now);
    }
  return task;
}

std::size_t Wires::place(TaskId task, const Flow& flow, double bytes, Ticks now) {
  if (free_.empty()) {
    moving_.emplace_back();
    free_.push_back(moving_.size() - 1);
  }
  const std::size_t place = free_.back();
  free_.pop_back();
  Moving& moving = moving_[place];
  moving.task = task;
  moving.flow = &flow;
  moving.rest = bytes;
  moving.since = now;
  moving.rate = 0.0;
  moving.arrives = moving.expected = Ticks::never();
  moving.handed_over = false;
  return place;
}

// Flows that are just arriving meet nobody any more.
bool Wires::meets_nobody(const Flow& flow, Ticks now) const {
  return std::all_of(flow.way.begin(), flow.way.end(), [&](const LinkUse& use) {
    const std::vector<std::size_t>& flows = links_[index(use.link)].flows;
    return std::all_of(flows.begin(), flows.end(), [&](std::size_t other) {
      return !moving_[other].handed_over && moving_[other].is_arriving(now);
    });
  });
}

// All flows that are joined to this one by links with several flows, and their links. Of those that
// SimGrid has, the first of a link stands for all: whoever is joined to it was handed over with it.
// To look for them again with each flow that starts would take the square of their number.
void Wires::join(std::size_t flow, Ticks now) {
  ++searches_;
  joined_.assign(1, flow);
  joining_.clear();
  moving_[flow].seen = searches_;
  for (std::size_t next = 0; next < joined_.size(); ++next) {
    if (moving_[joined_[next]].handed_over) continue;
    for (const LinkUse& use : moving_[joined_[next]].flow->way) {
      LinkState& link = at(use);
      if (link.seen == searches_) continue;
      link.seen = searches_;
      joining_.push_back(use.link);
      for (std::size_t other : link.flows) {
        Moving& moving = moving_[other];
        if (moving.seen == searches_) continue;
        moving.seen = searches_;
        if (!moving.handed_over && moving.is_arriving(now)) continue;
        joined_.push_back(other);
        if (moving.handed_over) break;
      }
    }
  }
}

bool Wires::simgrid_has_some() const {
  return std::any_of(joined_.begin(), joined_.end(),
                     [this](std::size_t flow) { return moving_[flow].handed_over; });
}

void Wires::share_out(Ticks now) {
  if (joined_.size() == 1) {
    Moving& moving = moving_[joined_.front()];
    return set_rate(moving, alone(*moving.flow), now);
  }
  for (LinkId id : joining_) {
    LinkState& link = links_[index(id)];
    link.unused = link.capacity;
    link.rising = 0;
  }
  rising_ = joined_;
  for (std::size_t flow : rising_)
    for (const LinkUse& use : moving_[flow].flow->way) at(use).rising += use.times;
  // Links that come out fuller by rounding alone are as full.
  constexpr double as_full = 1.0 + 1e-12;
  while (!rising_.empty()) {
    double level = std::numeric_limits<double>::infinity();
    for (LinkId id : joining_)
      if (const LinkState& link = links_[index(id)]; link.rising > 0)
        level = std::min(level, link.unused / link.rising);
    for (std::size_t flow : rising_) level = std::min(level, moving_[flow].flow->rate.si());
    const auto keeps = [&](std::size_t flow) {
      const Flow& of = *moving_[flow].flow;
      return of.rate.si() <= level * as_full ||
             std::any_of(of.way.begin(), of.way.end(), [&](const LinkUse& use) {
               return at(use).unused <= level * as_full * at(use).rising;
             });
    };
    // First who keeps it, then what that leaves: a link is as full for all flows on it.
    const auto kept = std::partition(rising_.begin(), rising_.end(),
                                     [&](std::size_t flow) { return !keeps(flow); });
    for (auto flow = kept; flow != rising_.end(); ++flow) {
      for (const LinkUse& use : moving_[*flow].flow->way) {
        at(use).rising -= use.times;
        at(use).unused = std::max(0.0, at(use).unused - use.times * level);
      }
      set_rate(moving_[*flow], level, now);
    }
    rising_.erase(kept, rising_.end());
  }
}

void Wires::set_rate(Moving& moving, double rate, Ticks now) {
  if (moving.rate == rate) return;
  moving.rest = std::max(0.0, moving.left(now));
  moving.since = now;
  moving.rate = rate;
  moving.arrives = now + Ticks::nearest(Seconds{moving.rest / rate});
  // Later than the calendar has it: that is seen when the time has come. A long flow beside many
  // short ones is slowed down and let go again and again.
  if (moving.arrives < moving.expected) expect(moving);
}

void Wires::expect(Moving& moving) {
  moving.expected = moving.arrives;
  calendar_.expect(moving.arrives, Calendar::What::flow_arrives,
                   static_cast<std::size_t>(&moving - moving_.data()));
}

}  // namespace orrery
