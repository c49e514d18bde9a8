#pragma once

#include "sim/plan/scenario.hpp"

namespace orrery {

/// The part of Adam that the host does for a GPU (offload_optimizer): gradients go down, the host
/// updates fp32 masters and moments, weights come back, one after the other (ZeRO-Offload, arXiv
/// 2101.06840; Megatron Core, optimizer/cpu_offloading/hybrid_optimizer.py, step). Shards of
/// gradients went down before (Plan::streams_gradients), and the host scales them; weights that the
/// host holds (offload_weights) stay there.
struct HostOptimizer {
  Bytes state;     ///< What of weights, masters, moments and gradients is in the host's memory.
  Bytes kept;      ///< Optimizer state that stays on the GPU.
  Seconds down;    ///< Gradients over the link to the host.
  Seconds update;  ///< Adam, at the GPU's share of the bandwidth of its node's host.
  Seconds up;      ///< Weights in the products' unquantised format.

  Seconds time() const { return down + update + up; }
};

/// Of a rank that updates `updated` parameters. Without offloading all state is kept.
HostOptimizer host_optimizer(const Scenario& scenario, double updated);

/// Time on the link to the host of a rank's shard of weights before they are gathered, and of its
/// shard of gradients after they are reduced. Zero where the host does not hold them.
Seconds weights_from_host(const Scenario& scenario, double shard);
Seconds gradients_to_host(const Scenario& scenario, double shard);

/// GPUs of the job whose state one node's host holds.
int gpus_of_a_host(const Scenario& scenario);

}  // namespace orrery
