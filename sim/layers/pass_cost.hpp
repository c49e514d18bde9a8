#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/collectives/collective_time.hpp"
#include "sim/core/units.hpp"
#include "sim/kernels/kernel_model.hpp"
#include "sim/layers/op.hpp"
#include "sim/measurements/price_errors.hpp"
#include "sim/nccl/collective_cost.hpp"
#include "sim/plan/software.hpp"

namespace orrery {

/// A time, divided by kind of price and by the basis of that price.
class TimeByPrice {
 public:
  Seconds& at(PriceKind kind, Tag tag) {
    return parts_[static_cast<std::size_t>(kind)][static_cast<std::size_t>(tag)];
  }
  Seconds at(PriceKind kind, Tag tag) const {
    return parts_[static_cast<std::size_t>(kind)][static_cast<std::size_t>(tag)];
  }
  /// An isolated collective: latency, then the bytes of the slower of its two ports.
  void add(const GroupCollective& collective) {
    const CollectiveCost& cost = collective.cost;
    const Seconds time = cost.time();
    if (collective.group == GroupKind::expert) {
      at(PriceKind::exchange, cost.tag) += time;
      return;
    }
    at(cost.latency_kind(), cost.tag) += cost.latency;
    at(cost.bytes_kind(), cost.tag) += time - cost.latency;
  }
  /// Adds `share` of `more`.
  void add(const TimeByPrice& more, double share = 1.0) {
    for (std::size_t kind = 0; kind < price_kinds; ++kind)
      for (std::size_t tag = 0; tag < PriceErrors::bases; ++tag)
        parts_[kind][tag] += share * more.parts_[kind][tag];
  }
  Seconds total() const {
    Seconds sum;
    for (const auto& kind : parts_)
      for (Seconds part : kind) sum += part;
    return sum;
  }
  /// The part without collectives.
  TimeByPrice kernels() const {
    TimeByPrice only;
    for (std::size_t kind = 0; kind <= static_cast<std::size_t>(PriceKind::host); ++kind)
      only.parts_[kind] = parts_[kind];
    return only;
  }

  TimeByPrice collectives() const {
    TimeByPrice only = *this;
    only.add(kernels(), -1.0);
    return only;
  }

 private:
  std::array<std::array<Seconds, PriceErrors::bases>, price_kinds> parts_{};
};

/// Activities of a GPU during a pass, without collectives.
enum class Work {
  products,         ///< Matrix products of weights.
  expert_products,  ///< Products of experts, many in one kernel.
  attention,        ///< Fused, or its batched products.
  streaming,        ///< Memory-bound kernels.
  host,             ///< Idle: the GPU waits for its host to launch kernels.
  slowed,           ///< Losses of kernels to concurrent collectives.
};
inline constexpr std::size_t kinds_of_work = 6;

/// A time, divided by the GPU's activities.
class TimeByWork {
 public:
  Seconds& at(Work work) { return parts_[static_cast<std::size_t>(work)]; }
  Seconds at(Work work) const { return parts_[static_cast<std::size_t>(work)]; }
  /// Adds `share` of `more`.
  void add(const TimeByWork& more, double share = 1.0) {
    for (std::size_t work = 0; work < kinds_of_work; ++work)
      parts_[work] += share * more.parts_[work];
  }
  Seconds total() const {
    Seconds sum;
    for (const Seconds part : parts_) sum += part;
    return sum;
  }

 private:
  std::array<Seconds, kinds_of_work> parts_{};
};

/// A part of a pass: kernels one after another, with at most one collective concurrent with them
/// and one after them. The kernels of a concurrent collective may also be several such segments.
struct Segment {
  Seconds compute;  ///< The slowest member's, if they differ.
  std::optional<GroupCollective> concurrent;
  std::optional<GroupCollective> after;
  /// Kernels of each rank of an expert group, by its place, if their rows differ. Empty: all alike.
  std::vector<Seconds> members = {};
  std::vector<Segment> fused = {};  ///< Replaces `compute`, which is zero then.
  Seconds weight_gradients = {};    ///< Part of `compute` that no other pass waits for.
  Seconds streaming = {};           ///< Part of `compute` in memory-bound kernels.
  Seconds idle = {};                ///< Part of `compute`: the GPU waits for its host.
  /// Belongs to the backward pass of two that run together. An expert group's collective next to it
  /// belongs to the other.
  bool backward = false;
  /// Labels of a trace: first and last kernel (Op::name, static text), and the layer of the model;
  /// -1: none or several.
  std::string_view first_kernel = {}, last_kernel = {};
  int layer = -1;

  /// Length on a GPU of this speed, without other traffic on the collectives' links.
  Seconds time(double speed = 1.0) const;
};

struct PricedOp {
  Op op;
  Seconds time;
  Tag tag = Tag::default_value;
};

/// Additional time of uneven routing over even routing.
struct RoutingLoss {
  Seconds dispatch;  ///< Busier ports in dispatch.
  Seconds compute;   ///< The slowest rank's kernels over the mean rank's.
  Seconds combine;   ///< Busier ports in combine.

  void add(const RoutingLoss& more) {
    dispatch += more.dispatch;
    compute += more.compute;
    combine += more.combine;
  }
};

/// The cost for a rank of one pass through some layers.
struct PassCost {
  std::vector<Segment> segments;
  Seconds compute;                  ///< Kernels, launch gaps and the host's floor.
  TimeByWork work;                  ///< The activities of `compute`.
  TimeByWork recomputed;            ///< Part of `work` that repeats the forward pass.
  Seconds communication;            ///< Collectives, exposed or not.
  std::array<Seconds, 3> by_tag{};  ///< compute + communication, by Tag.
  /// The prices that determine its length, without collectives that kernels hide, and without
  /// kernels that wait for a longer concurrent collective. Adds up to time().
  TimeByPrice decisive;
  /// Part of it that kernels lose to concurrent collectives, by the collectives' prices.
  TimeByPrice taken;
  /// Bytes sent by each group's collectives from the rank's NVLink port, and from its NIC.
  std::array<Bytes, group_kinds> scale_up_bytes{}, network_bytes{};

  RoutingLoss lost;  ///< Included in the times.

  /// Isolated length if all ranks of its groups have this speed; the excess over `compute` is
  /// exposed communication.
  Seconds time(double speed = 1.0) const;
  /// The time that a rank of this speed waits for collectives of one group.
  Seconds exposed(GroupKind group, double speed = 1.0) const;
  bool has_collectives() const;
  void append(const PassCost& more);
  /// Appends the pass of one layer of the model.
  void append_layer(const PassCost& more, int layer);
  void append(const GroupCollective& collective);
  /// Appends `kernels`, and a collective that begins with them.
  void append_concurrent(const PassCost& kernels, const GroupCollective& collective);
  /// Marks all work as recomputed.
  void mark_recomputed() { recomputed = work; }
  /// Adds the loss of kernels to a concurrent collective; their segments include it already.
  void add_lost(Seconds time, const TimeByPrice& prices);
};

/// An idle GPU; a trace shows it as `name`, static text.
PassCost waiting(Seconds time, std::string_view name);

/// Length of consecutive segments, as in Segment::time().
Seconds time_of(const std::vector<Segment>& segments, double speed = 1.0);
/// Number of tasks, kernels and collectives, that represent the segments.
std::size_t tasks_in(const std::vector<Segment>& segments);

/// Calls visit(collective) for each in `segments`, in the order in which they begin.
template <class Visit>
void for_each_collective(const std::vector<Segment>& segments, const Visit& visit) {
  for (const Segment& segment : segments) {
    if (segment.concurrent) visit(*segment.concurrent);
    for_each_collective(segment.fused, visit);
    if (segment.after) visit(*segment.after);
  }
}

/// Prices ops on one system and plan.
class Pricer {
 public:
  Pricer(const KernelModel& kernels, const CollectiveTime& collectives, const GroupShapes& shapes,
         const Software& software, const Gpu& gpu);

  KernelTime time(const Op& op) const;
  PricedOp price(const Op& op) const;
  /// Pass the time of the host as `host` if it is known to exceed that of its launches.
  PassCost price(const Ops& ops, Seconds host = {}) const;
  /// Equals price(ops, host).time(), to the last bit, at less cost.
  Seconds length(const Ops& ops, Seconds host = {}) const;
  GroupCollective collective(const Op& op) const;
  /// Received data are added to existing data if `sums`.
  GroupCollective collective(const CollectiveCost& cost, GroupKind group, bool combine,
                             bool sums) const;
  const CollectiveTime& collectives() const { return collectives_; }

 private:
  const KernelModel& kernels_;
  const CollectiveTime& collectives_;
  GroupShapes shapes_;
  const Software& software_;
  FlopPerSecond peak_;
  int multiprocessors_;
};

}  // namespace orrery
