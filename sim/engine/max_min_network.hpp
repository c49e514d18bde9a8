#pragma once

#include <vector>

#include "sim/engine/network_model.hpp"

namespace orrery {

/// Flows that share links by max-min fairness: rates rise together until a link is full; its flows
/// keep their rate while the others continue to rise (Bertsekas and Gallager, Data Networks,
/// section 6.5.2). A flow never exceeds its own rate.
///
/// Rates change when a flow starts or arrives, and only among flows that are connected to it by
/// common links. They are solved once for all events of one time, before time moves on.
class MaxMinNetwork final : public NetworkModel {
 public:
  MaxMinNetwork(const Topology& topology, EventOrder& order) : topology_{topology}, order_{order} {}

  void start(std::uint32_t sender, const Flow& flow, double bytes, Ticks now) override;
  std::optional<Arrival> advance(Ticks time, std::uint64_t order) override;
  bool is_idle(LinkId link) const override {
    return index(link) >= links_.size() || links_[index(link)].flows.empty();
  }
  bool is_exact() const override { return true; }

  /// The rates of all flows, in bytes/s, in the order of start() as long as none has arrived.
  std::vector<double> rates();

  /// Remaining bytes of a flow that counts as arrived, because of rounding.
  static constexpr double negligible_bytes = 1e-3;

 private:
  struct Moving {
    const Flow* flow = nullptr;  // Null: a free entry.
    std::uint32_t sender = 0;
    double rest = 0.0;  // Bytes, at `since`.
    Ticks since;
    double rate = 0.0;  // 0: not solved yet.
    Ticks arrives = Ticks::never();
    Ticks expected = Ticks::never();  // The time of its next event, not after `arrives`.
    std::size_t solution = 0;         // The last solution with this flow.
    bool is_rising = false;           // Its rate still rises in that solution.

    double left(Ticks now) const { return rest - rate * (now - since).seconds().si(); }
    bool is_arriving(Ticks now) const {
      return rate > 0.0 && (arrives <= now || left(now) < negligible_bytes);
    }
  };
  struct LinkState {
    std::vector<std::uint32_t> flows;
    double capacity = 0.0;
    double unused = 0.0;  // Used while rates are solved.
    int rising = 0;       // Crossings by flows whose rate still rises.
    std::size_t solution = 0;
  };

  static std::size_t index(LinkId link) { return static_cast<std::size_t>(link.value); }
  LinkState& at(const LinkUse& use) { return links_[index(use.link)]; }
  void learn_links();
  bool is_alone(const Flow& flow, Ticks now) const;
  double isolated_rate_of(const Flow& flow) const;
  void change(const FlowRoute& route, Ticks now);
  void arrive(std::uint32_t place, Ticks now);
  void solve();
  void connect(LinkId link);
  void fill();
  void set_rate(Moving& moving, double rate);
  void expect(Moving& moving);

  const Topology& topology_;
  EventOrder& order_;
  EventQueue<Ticks, std::uint32_t>
      arrivals_;  // Indices of flows, whose rates may have fallen since.
  std::vector<Moving> moving_;
  std::vector<std::uint32_t> free_;
  std::vector<LinkState> links_;

  Ticks changed_at_;
  std::vector<LinkId> changed_;  // Links whose flows must be solved again before time moves on.
  std::size_t solutions_ = 0;
  std::vector<std::uint32_t> connected_;  // Flows connected by links, and those links.
  std::vector<LinkId> connecting_;
  std::vector<std::uint32_t> kept_, by_own_rate_;
};

/// The rates of these concurrent flows, in bytes/s.
std::vector<double> max_min_rates(const std::vector<const Flow*>& flows, const Topology& topology);

}  // namespace orrery
