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

}  // namespace orrery
