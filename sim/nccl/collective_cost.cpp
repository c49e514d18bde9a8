#include "sim/nccl/collective_cost.hpp"

#include <algorithm>
#include <cmath>

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

PriceKind CollectiveCost::latency_kind() const {
  return network_bytes > Bytes{} ? PriceKind::network_latency : PriceKind::nvlink_latency;
}

PriceKind CollectiveCost::bytes_kind() const {
  return network_decides() ? PriceKind::network_bytes : PriceKind::nvlink_bytes;
}

double CollectiveCost::deviation(const PriceErrors& errors) const {
  const auto error = [&](PriceKind kind) {
    return errors.of[static_cast<std::size_t>(kind)][static_cast<std::size_t>(tag)];
  };
  const Seconds all = time();
  if (all <= Seconds{}) return 0.0;
  return std::hypot(latency / all * error(latency_kind()),
                    (all - latency) / all * error(bytes_kind()));
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
