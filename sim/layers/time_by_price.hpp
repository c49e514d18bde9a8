#pragma once

#include <array>

#include "sim/collectives/group_collective.hpp"
#include "sim/core/units.hpp"
#include "sim/measurements/price_errors.hpp"

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

}  // namespace orrery
