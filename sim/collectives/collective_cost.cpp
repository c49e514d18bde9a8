#include "sim/collectives/collective_cost.hpp"

#include <algorithm>

namespace orrery {
namespace {

Seconds transfer(Bytes bytes, BytesPerSecond rate) {
  return bytes.si() > 0.0 ? bytes / rate : Seconds{};
}

}  // namespace

Seconds CollectiveCost::time() const {
  return latency +
         std::max(transfer(scale_up_bytes, scale_up_rate), transfer(network_bytes, network_rate));
}

bool CollectiveCost::network_decides() const {
  return transfer(network_bytes, network_rate) > transfer(scale_up_bytes, scale_up_rate);
}

CollectiveCost CollectiveCost::scaled(double share) const {
  CollectiveCost part = *this;
  part.latency = share * latency;
  part.scale_up_bytes = share * scale_up_bytes;
  part.network_bytes = share * network_bytes;
  return part;
}

double wire_share(CollectiveKind kind, int n) {
  const double passes = facts(kind).passes;
  return passes == 0.0 ? 1.0 : passes * (n - 1) / n;
}

int tree_sends(int domains) { return domains == 2 ? 2 : 4; }

WireBytes wire_bytes(NcclAlgorithm algorithm, CollectiveKind kind, Bytes tensor, GroupShape group) {
  const double p = group.per_domain;
  const bool one_domain = group.domains == 1;
  const bool all_reduce = kind == CollectiveKind::all_reduce;
  const Bytes chain = 2.0 * (p - 1.0) / p * tensor;
  const Bytes tree = tree_sends(group.domains) / (2.0 * p) * tensor;
  switch (algorithm) {
    case NcclAlgorithm::ring:
    case NcclAlgorithm::pat: {
      const Bytes wire = wire_share(kind, group.ranks) * tensor;
      return one_domain ? WireBytes{wire, {}} : WireBytes{(p - 1.0) / p * wire, wire / p};
    }
    case NcclAlgorithm::tree:
      return {chain, one_domain ? Bytes{} : tree};
    case NcclAlgorithm::nvls:
      return {all_reduce ? (1.0 + 1.0 / p) * tensor : tensor, {}};
    case NcclAlgorithm::nvls_tree:
      return {(1.0 + 1.0 / p) * tensor, tree};
    case NcclAlgorithm::collnet_direct:
    case NcclAlgorithm::collnet_chain:
      return {chain, tensor / p};
  }
  return {};
}

}  // namespace orrery
