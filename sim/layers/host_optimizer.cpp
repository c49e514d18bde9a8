#include "sim/layers/host_optimizer.hpp"

#include <algorithm>

namespace orrery {

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
  // Adam reads the gradient and reads and writes the rest; a second pass makes the weights
  // (DeepSpeed, stage_1_and_2.py, step; PyTorch, cuda/Copy.cpp: the CPU converts).
  const double traffic = gradient + 2.0 * (master + moments) + master + weight;
  host.update = Bytes{traffic * moved} /
                (s.software.host_adam / gpus_of_a_host(s) * s.system.host_memory_bandwidth);
  host.up = Bytes{weight * moved} / s.system.gpu.host;
  return host;
}

}  // namespace orrery
