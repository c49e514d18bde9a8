#include "sim/nccl/collective_cost.hpp"

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

WireBytes ring_bytes(const CollectiveCall& call) {
  const double p = call.group.per_domain;
  const Bytes wire = wire_share(call.kind, call.group.ranks) * call.tensor;
  return call.group.domains == 1 ? WireBytes{wire, {}} : WireBytes{(p - 1.0) / p * wire, wire / p};
}

Bytes chain_bytes(const CollectiveCall& call) {
  const double p = call.group.per_domain;
  return 2.0 * (p - 1.0) / p * call.tensor;
}

Bytes tree_bytes(const CollectiveCall& call) {
  return tree_sends(call.group.domains) / (2.0 * call.group.per_domain) * call.tensor;
}

}  // namespace orrery
