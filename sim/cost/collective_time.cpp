#include "sim/cost/collective_time.hpp"

#include <algorithm>

namespace orrery {

CollectiveTime::CollectiveTime(const System& system, const CollectiveOptions& options)
    : system_{system},
      options_{options},
      model_{system},
      measurements_{system, model_.constants().gpu, options.left_out},
      tuner_{system, model_.constants().nvlink_share * system.scale_up},
      own_{model_.constants().gpu == system.gpu.name} {}

// `factor` times as long. Bytes stay those on the wire; rates slow down or speed up with the rest,
// but no faster than the wire, and the latency makes up for what that leaves.
CollectiveCost CollectiveTime::stretched(CollectiveCost cost, double factor) const {
  const Seconds time = factor * cost.time();
  cost.scale_up_rate = std::min(cost.scale_up_rate / factor, system_.scale_up);
  cost.network_rate = std::min(cost.network_rate / factor, model_.nic());
  cost.latency = Seconds{};
  cost.latency = std::max(Seconds{}, time - cost.time());
  return cost;
}

// Names what NCCL takes, and returns how much longer than its free choice the forced one is.
double CollectiveTime::name_choice(CollectiveCost& cost, CollectiveKind kind, Bytes tensor,
                                   GroupShape group) const {
  if (kind == CollectiveKind::all_to_all || kind == CollectiveKind::send_recv) {
    // NCCL has no algorithms for these; small messages go flagged (src/enqueue.cc,
    // NCCL_P2P_LL_THRESHOLD), over two channels a peer.
    constexpr Bytes flagged{16384.0};
    const int peers = kind == CollectiveKind::all_to_all ? group.ranks - 1 : 1;
    const Bytes a_peer = kind == CollectiveKind::all_to_all ? tensor / group.ranks : tensor;
    cost.protocol = name(a_peer <= flagged ? NcclProtocol::ll : NcclProtocol::simple);
    cost.channels = std::min(32, 2 * peers);
    return 1.0;
  }
  const auto chosen = tuner_.choose(kind, tensor, group, options_.selection);
  if (!chosen)
    fail_infeasible({},
                    "none of the NCCL algorithms and protocols that are allowed can do " +
                        std::string{name(kind)} + " here",
                    "allow Ring with Simple, which always can");
  cost.algorithm = name(chosen->algorithm);
  cost.protocol = name(chosen->protocol);
  cost.channels = chosen->channels;
  if (!options_.selection.forced) return 1.0;
  return chosen->time / tuner_.choose(kind, tensor, group)->time;
}

CollectiveCost CollectiveTime::operator()(CollectiveKind kind, Bytes tensor,
                                          GroupShape group) const {
  if (group.ranks == 1 || tensor.si() <= 0.0) return {};
  CollectiveCost cost = model_(kind, tensor, group);
  if (!measurements_.empty()) {
    const auto formula = [&](Bytes bytes, GroupShape of) { return model_(kind, bytes, of); };
    if (const auto correction = measurements_.correction({kind, group}, tensor, formula)) {
      cost = stretched(cost, correction->factor);
      cost.tag = own_ ? correction->tag : Tag::interpolated;
    }
  }
  const double slower = name_choice(cost, kind, tensor, group);
  if (slower != 1.0) {
    cost = stretched(cost, slower);
    cost.tag = Tag::default_value;
  }
  return cost;
}

CollectiveCost CollectiveTime::send(Bytes bytes, bool same_domain) const {
  return bytes.si() > 0.0 ? model_.send(bytes, same_domain) : CollectiveCost{};
}

}  // namespace orrery
