#pragma once

#include <map>
#include <vector>

#include "sim/cluster/topology.hpp"
#include "sim/engine/task.hpp"

namespace orrery {

/// A share of the keys and values of a request that one GPU sends to another.
struct KvSend {
  Rank from, to;
  double share = 0.0;
};

/// What two GPUs that send to each other reach on idle links, inside a domain and beyond.
struct SendRates {
  BytesPerSecond inside, outside;
  Seconds latency_inside, latency_outside;  ///< Without what further switches add.
};

/// What a byte of keys and values puts on the links between a copy of attention that has computed a
/// prompt and one that goes on with it.
struct KvWay {
  Flows flows;        ///< Of one byte of all keys and values.
  Seconds latency;    ///< Of the longest way.
  Seconds alone;      ///< A byte takes, if nobody else is on the links.
  double sent = 0.0;  ///< Bytes that are sent for one: over 1 where ranks hold the same.
};

/// The ways between all copies, found when they are first asked for.
class KvWays {
 public:
  using Sends = std::vector<KvSend>;

  /// `sends(from, to)`: who sends what from copy `from` of the prefill pool to copy `to` of the
  /// decode pool.
  KvWays(Topology topology, SendRates rates,
         std::function<Sends(std::uint32_t from, std::uint32_t to)> sends)
      : topology_{std::move(topology)}, rates_{rates}, sends_{std::move(sends)} {}
  KvWays(const KvWays&) = delete;
  KvWays& operator=(const KvWays&) = delete;

  const Topology& topology() const { return topology_; }
  const KvWay& between(std::uint32_t from, std::uint32_t to);

 private:
  KvWay way(const Sends& sends) const;

  Topology topology_;
  SendRates rates_;
  std::function<Sends(std::uint32_t, std::uint32_t)> sends_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, KvWay> known_;
};

}  // namespace orrery
