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

/// A time, cut up by what it was priced as and by what the price rests on.
class TimeByPrice {
 public:
  Seconds& at(PriceKind kind, Tag tag) {
    return parts_[static_cast<std::size_t>(kind)][static_cast<std::size_t>(tag)];
  }
  Seconds at(PriceKind kind, Tag tag) const {
    return parts_[static_cast<std::size_t>(kind)][static_cast<std::size_t>(tag)];
  }
  /// A collective alone on its links: latency, then the bytes of the slower of its two ports.
  void add(const GroupCollective& collective) {
    const CollectiveCost& cost = collective.cost;
    const Seconds time = cost.time();
    if (collective.group == GroupKind::expert) {
      at(PriceKind::exchange, cost.tag) += time;
      return;
    }
    const bool network = cost.network_bytes > Bytes{};
    at(network ? PriceKind::network_latency : PriceKind::nvlink_latency, cost.tag) += cost.latency;
    at(cost.network_decides() ? PriceKind::network_bytes : PriceKind::nvlink_bytes, cost.tag) +=
        time - cost.latency;
  }
  /// `share` of `more`.
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
  /// Without collectives.
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

/// What a GPU does during a pass, collectives left out.
enum class Work {
  products,         ///< Matrix products of weights.
  expert_products,  ///< The same of experts, many in one kernel.
  attention,        ///< Fused, or its batched products.
  streaming,        ///< Kernels that memory bounds.
  host,             ///< Nothing: it waits for its host to launch kernels.
  slowed,           ///< What kernels lose to collectives beside them.
};
inline constexpr std::size_t kinds_of_work = 6;

/// A time, cut up by what the GPU does in it.
class TimeByWork {
 public:
  Seconds& at(Work work) { return parts_[static_cast<std::size_t>(work)]; }
  Seconds at(Work work) const { return parts_[static_cast<std::size_t>(work)]; }
  /// `share` of `more`.
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

/// A stretch of a pass: kernels one after another, with at most one collective beside them and one
/// after. What a collective runs beside may also be a chain of such stretches.
struct Segment {
  Seconds compute;  ///< Of the slowest member, where they differ.
  std::optional<GroupCollective> beside;
  std::optional<GroupCollective> after;
  /// Where the ranks of an expert group have different rows: each one's kernels, by its place in
  /// the group. Empty: all alike.
  std::vector<Seconds> members = {};
  std::vector<Segment> chain = {};  ///< In place of `compute`, which is zero then.
  Seconds weight_gradients = {};    ///< Of `compute`: what no other pass waits for.
  Seconds streaming = {};           ///< Of `compute`: kernels that memory bounds.
  Seconds idle = {};                ///< Of `compute`: the GPU waits for its host.
  /// Where two passes run together: of the backward one. An expert group's collective beside it is
  /// the other's.
  bool backward = false;
  /// What a trace calls it: its first and last kernel (Op::name, static text), and the model's
  /// layer that it belongs to; -1: none or several.
  std::string_view first_kernel = {}, last_kernel = {};
  int layer = -1;

  /// Its length where no other traffic is on the collectives' links, on a GPU of this speed.
  Seconds time(double speed = 1.0) const;
};

struct PricedOp {
  Op op;
  Seconds time;
  Tag tag = Tag::default_value;
};

/// Time that uneven routing costs, over an even one's.
struct LostToRouting {
  Seconds dispatch;  ///< Busier ports on the way to the experts.
  Seconds compute;   ///< The slowest rank's kernels over the mean rank's.
  Seconds combine;   ///< Busier ports on the way back.

  void add(const LostToRouting& more) {
    dispatch += more.dispatch;
    compute += more.compute;
    combine += more.combine;
  }
};

/// What one pass through some layers costs a rank.
struct PassCost {
  std::vector<Segment> segments;
  Seconds compute;                  ///< Kernels, launch gaps and the host's floor.
  TimeByWork work;                  ///< `compute`, by what is done.
  TimeByWork recomputed;            ///< Of `work`: what the forward pass did before.
  Seconds communication;            ///< Collectives, exposed or not.
  std::array<Seconds, 3> by_tag{};  ///< compute + communication, by Tag.
  /// What decides how long it takes: collectives that kernels hide are not in it, nor kernels that
  /// wait beside a longer collective. Adds up to time().
  TimeByPrice decisive;
  /// Of that, by the collectives' prices, what kernels lose to collectives beside them.
  TimeByPrice taken;
  /// What a group's collectives send from the rank's NVLink port, and from its NIC.
  std::array<Bytes, group_kinds> scale_up_bytes{}, network_bytes{};

  LostToRouting lost;  ///< In it.

  /// Length alone on the machine, all ranks of its groups being of this speed; over `compute` it is
  /// exposed communication.
  Seconds time(double speed = 1.0) const;
  /// How much of it a rank of this speed waits for collectives of one group.
  Seconds exposed(GroupKind group, double speed = 1.0) const;
  bool has_collectives() const;
  void append(const PassCost& more);
  /// The same of one layer of the model.
  void append_layer(const PassCost& more, int layer);
  void append(const GroupCollective& collective);
  /// `kernels`, and a collective that begins with them.
  void append_beside(const PassCost& kernels, const GroupCollective& collective);
  /// All that it does was done before, by a forward pass.
  void repeats() { recomputed = work; }
  /// Counts what kernels lose to a collective beside them, which their segments have already.
  void add_lost(Seconds time, const TimeByPrice& prices);
};

/// A GPU with nothing to do for so long; a trace shows it as `name`, static text.
PassCost waiting(Seconds time, std::string_view name);

/// Length of stretches one after another, as Segment::time().
Seconds time_of(const std::vector<Segment>& segments, double speed = 1.0);
/// How many kernels and collectives they are drawn as.
std::size_t tasks_in(const std::vector<Segment>& segments);

/// Calls visit(collective) for each in `segments`, as they begin.
template <class Visit>
void for_each_collective(const std::vector<Segment>& segments, const Visit& visit) {
  for (const Segment& segment : segments) {
    if (segment.beside) visit(*segment.beside);
    for_each_collective(segment.chain, visit);
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
  /// `host`: how long the host is busy with it, where more is known than its launches.
  PassCost price(const Ops& ops, Seconds host = {}) const;
  /// price(ops, host).time(), to the last bit: of many ranks only the slowest needs all of it.
  Seconds length(const Ops& ops, Seconds host = {}) const;
  GroupCollective collective(const Op& op) const;
  /// `sums`: adds what arrives to what is there.
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
