#pragma once

#include <map>
#include <vector>

#include "sim/cluster/topology.hpp"
#include "sim/engine/task_graph.hpp"
#include "sim/serving/deployment.hpp"

namespace orrery {

/// Bytes of the keys and values of `tokens` tokens of a prompt, of all layers and heads once, and
/// of the states of a request: what a decode step reads. Layers with a window count no token that
/// has left it.
///
///     sum over layers of min(tokens, window) x 2 kv_heads head_dim B      latent: (512 + 64) B
Bytes kv_bytes(const Model& model, const Deployment& plan, std::int64_t tokens);
/// The states among them.
Bytes states_sent(const Model& model, const Deployment& plan);

/// A transfer from one GPU of a copy of the prefill pool to one of a copy of the decode pool. GPUs
/// count within their copy, stage by stage and rank by rank: stage x tp + rank.
struct KvLane {
  int from = 0, to = 0;
  double share = 0.0;  ///< Share of kv_bytes().
};

/// The transfers between copies of attention that are cut differently: each rank gets the layers of
/// its stage and the key heads of its rank from one that has them. Ranks of the decode pool that
/// hold the same heads, as all do of a latent cache, each get them, so that the shares may add up
/// to more than one; ranks of the prefill pool that hold the same take turns.
std::vector<KvLane> kv_lanes(const Model& model, const Deployment& prefill,
                             const Deployment& decode);

/// A share of the keys and values of a request that one GPU sends to another.
struct KvSend {
  Rank from, to;
  double share = 0.0;
};

/// Rates between two GPUs on idle links, inside a domain and beyond.
struct SendRates {
  BytesPerSecond inside, outside;
  Seconds latency_inside, latency_outside;  ///< Latencies without further switches.
  double network_share = 1.0;               ///< EnginePools::network_share
};

/// The cost of moving one byte of keys and values from a copy of attention that has computed a
/// prompt to one that decodes it.
struct KvRoute {
  Flows flows;        ///< Flows for one byte.
  Seconds latency;    ///< Latency of the longest route.
  Seconds alone;      ///< Time of one byte on idle links.
  double sent = 0.0;  ///< Bytes sent for one: over 1 if ranks hold the same.

  /// The bytes that flows share out, if a request has `bytes` of which `states` are its states.
  /// Ranks with copies of key heads hold different parts of the states, which are sent once.
  double shared_bytes(double bytes, double states) const {
    return sent > 0.0 ? bytes - states * (1.0 - 1.0 / sent) : bytes;
  }
};

/// The routes between all copies, found when first needed.
class KvRoutes {
 public:
  using Sends = std::vector<KvSend>;

  /// `sends(from, to)`: the transfers from copy `from` of the prefill pool to copy `to` of the
  /// decode pool.
  KvRoutes(Topology topology, SendRates rates,
           std::function<Sends(std::uint32_t from, std::uint32_t to)> sends)
      : topology_{std::move(topology)}, rates_{rates}, sends_{std::move(sends)} {}
  KvRoutes(const KvRoutes&) = delete;
  KvRoutes& operator=(const KvRoutes&) = delete;

  const Topology& topology() const { return topology_; }
  const KvRoute& between(std::uint32_t from, std::uint32_t to);

 private:
  KvRoute route(const Sends& sends) const;

  Topology topology_;
  SendRates rates_;
  std::function<Sends(std::uint32_t, std::uint32_t)> sends_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, KvRoute> known_;
};

}  // namespace orrery
