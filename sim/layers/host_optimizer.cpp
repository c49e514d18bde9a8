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
  double state = gradient + master + moments;
  // DeepSpeed's shards of the weights; PyTorch's are the masters.
  if (s.plan.shards_weights() && s.software.shards_by_tensor) {
    if (s.plan.offload_weights)
      state += weight;
    else
      host.kept += Bytes{weight * moved};
  }
  host.state = Bytes{state * moved};
  // Adam reads the gradient and reads and writes the rest.
  double traffic = gradient + 2.0 * (master + moments);
  // A second pass makes the weights (DeepSpeed, stage_1_and_2.py, step; PyTorch, cuda/Copy.cpp: the
  // CPU converts).
  const bool keeps_masters = s.plan.offload_weights && !s.software.shards_by_tensor;
  if (!keeps_masters) traffic += master + weight;
  // The host clips what it has. DeepSpeed takes the norm on the GPU (stage3.py,
  // unscale_and_clip_grads), torch.nn.utils.clip_grad_norm_ where gradients are.
  if (s.plan.streams_gradients()) traffic += (s.software.shards_by_tensor ? 2.0 : 3.0) * gradient;
  if (!s.plan.streams_gradients()) host.down = Bytes{gradient * moved} / s.system.gpu.host;
  host.update = Bytes{traffic * moved} /
                (s.software.host_adam / gpus_of_a_host(s) * s.system.host_memory_bandwidth);
  if (!s.plan.offload_weights) host.up = Bytes{weight * moved} / s.system.gpu.host;
  return host;
}

// PyTorch's FSDP copies fp32 shards and casts them on the GPU (_fsdp_param.py, all_gather_inputs,
// offload_to_cpu), DeepSpeed has 16 bits (partition_parameters.py, ds_tensor.to).
Seconds weights_from_host(const Scenario& s, double shard) {
  if (!s.plan.offload_weights) return {};
  const double each = s.software.shards_by_tensor ? unquantised_bytes(s.plan.dtype) : 4.0;
  return Bytes{each * shard} / s.system.gpu.host;
}

Seconds gradients_to_host(const Scenario& s, double shard) {
  if (!s.plan.streams_gradients()) return {};
  return Bytes{s.software.main_gradient_bytes * s.plan.offload_optimizer / 100.0 * shard} /
         s.system.gpu.host;
}

}  // namespace orrery
