#pragma once

#include <functional>
#include <vector>

#include "sim/cluster/topology.hpp"
#include "sim/core/ticks.hpp"
#include "sim/core/units.hpp"
#include "sim/engine/calendar.hpp"
#include "sim/engine/task.hpp"

namespace orrery {

/// All flows that are on their way, and how fast. Flows that meet share links by max-min fairness:
/// rates rise together until a link is full, whose flows keep their rate while the others rise on
/// (Bertsekas and Gallager, Data Networks, section 6.5.2). A few that meet are shared out here, by
/// progressive filling; as soon as more are joined by common links, all of them are handed over to
/// SimGrid with the bytes that are left, until they have arrived.
class Wires {
 public:
  /// More flows than this, joined by common links, are SimGrid's unless it is asked otherwise.
  static constexpr std::size_t most_shared_here = 16;
  /// Bytes that are still to come of a flow that has arrived: rounding.
  static constexpr double arrived = 1e-3;

  /// `hand_over(flow, bytes)`: must call arrive() when the rest of `flow` has arrived.
  Wires(const Topology& topology, Calendar& calendar, std::size_t most,
        std::function<void(std::size_t flow, double bytes)> hand_over)
      : calendar_{calendar}, most_{most}, hand_over_{std::move(hand_over)} {
    learn_links(topology);
  }

  /// Those that `topology` has numbered by now.
  void learn_links(const Topology& topology) {
    const std::size_t known = links_.size();
    links_.resize(static_cast<std::size_t>(topology.link_count()));
    for (std::size_t i = known; i < links_.size(); ++i)
      links_[i].capacity = topology.link(LinkId{static_cast<int>(i)}).capacity.si();
  }

  /// Its arrival is in the calendar, or SimGrid's. `flow` must outlive it.
  void start(TaskId task, const Flow& flow, double bytes, Ticks now);
  /// Whether a flow arrives now that the calendar says so. One that has been slowed down since is
  /// expected again.
  bool arrives_at(std::size_t flow, Ticks time);
  /// Takes a flow away and says whose it was.
  TaskId arrive(std::size_t flow, Ticks now);

  const Flow& flow(std::size_t of) const { return *moving_[of].flow; }
  /// rate_alone() of it, in bytes a second.
  double alone(const Flow& flow) const;
  bool idle(LinkId link) const { return links_[index(link)].flows.empty(); }

 private:
  struct Moving {
    TaskId task;
    const Flow* flow = nullptr;
    double rest = 0.0;  // Bytes, at `since`.
    Ticks since;
    double rate = 0.0;
    Ticks arrives = Ticks::never();
    Ticks expected = Ticks::never();  // When the calendar has it next: not after it arrives.
    bool handed_over = false;
    std::size_t seen = 0;  // In the search for joined flows.

    double left(Ticks now) const { return rest - rate * (now - since).seconds().si(); }
    bool is_arriving(Ticks now) const { return arrives <= now || left(now) < arrived; }
  };
  struct LinkState {
    std::vector<std::size_t> flows;
    double capacity = 0.0;
    double unused = 0.0;  // While rates are shared out.
    int rising = 0;       // Flows on it, as often as they cross it, whose rate still rises.
    std::size_t seen = 0;
  };

  static std::size_t index(LinkId link) { return static_cast<std::size_t>(link.value); }
  LinkState& at(const LinkUse& use) { return links_[index(use.link)]; }
  std::size_t place(TaskId task, const Flow& flow, double bytes, Ticks now);
  bool meets_nobody(const Flow& flow, Ticks now) const;
  void join(std::size_t flow, Ticks now);
  bool simgrid_has_some() const;  // Of the joined ones.
  void share_out(Ticks now);
  void set_rate(Moving& moving, double rate, Ticks now);
  void expect(Moving& moving);

  Calendar& calendar_;
  std::size_t most_;
  std::function<void(std::size_t, double)> hand_over_;
  std::vector<Moving> moving_;
  std::vector<std::size_t> free_;
  std::vector<LinkState> links_;
  std::size_t searches_ = 0;
  std::vector<std::size_t> joined_;  // Flows, and the links that join them.
  std::vector<LinkId> joining_;
  std::vector<std::size_t> rising_;
};

}  // namespace orrery
