#include "sim/layers/host_optimizer.hpp"

#include <algorithm>

namespace orrery {
namespace {

// DeepSpeed's CPU Adam updates 10 billion parameters in 2.57 s on two Xeon Platinum 8168, whose
// twelve channels of DDR4-2666 carry 256 GB/s (ZeRO-Offload, arXiv 2101.06840, table 4): of each it
// reads a gradient (4), reads and writes master and moments (24), and writes the weight (2).
constexpr double adam_share_of_bandwidth = 30.0 * 10e9 / 2.57 / 256e9;

}  // namespace

int gpus_of_a_host(const Scenario& s) { return std::min(s.plan.gpus(), s.system.gpus_per_node); }

HostOptimizer host_optimizer(const Scenario& s, double updated) {
  const double moved = s.plan.offload_optimizer / 100.0 * updated;
  HostOptimizer host;
  host.kept = Bytes{s.software.state_bytes * (updated - moved)};
  if (moved <= 0.0) return host;
  const double gradient = s.software.main_gradient_bytes, master = 4.0;
  const double weight = unquantised_bytes(s.plan.dtype);
  const double moments = element_bytes(s.plan.exp_avg) + element_bytes(s.plan.exp_avg_sq);
  // DeepSpeed's shards of the weights.
  if (s.plan.shards_weights()) host.kept += Bytes{weight * moved};
  host.state = Bytes{(gradient + master + moments) * moved};
  host.down = Bytes{gradient * moved} / s.system.gpu.host;
  host.update = Bytes{(gradient + 2.0 * master + 2.0 * moments + weight) * moved} /
                (adam_share_of_bandwidth / gpus_of_a_host(s) * s.system.host_memory_bandwidth);
  host.up = Bytes{weight * moved} / s.system.gpu.host;
  return host;
}

}  // namespace orrery
