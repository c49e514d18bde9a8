#pragma once

#include "sim/plan/scenario.hpp"

namespace orrery {

/// The part of Adam that the host does for a GPU (offload_optimizer): gradients go down, the host
/// updates fp32 masters and moments, weights come back, one after the other (ZeRO-Offload, arXiv
/// 2101.06840; Megatron Core, optimizer/cpu_offloading/hybrid_optimizer.py, step).
struct HostOptimizer {
  Bytes state;     ///< Masters, moments and the gradients that Adam reads, in the host's memory.
  Bytes kept;      ///< Optimizer state that stays on the GPU.
  Seconds down;    ///< Gradients over the link to the host.
  Seconds update;  ///< Adam, at the GPU's share of the bandwidth of its node's host.
  Seconds up;      ///< Weights in the products' unquantised format.

  Seconds time() const { return down + update + up; }
};

/// Of a rank that updates `updated` parameters. Without offloading all state is kept.
HostOptimizer host_optimizer(const Scenario& scenario, double updated);

/// GPUs of the job whose state one node's host holds.
int gpus_of_a_host(const Scenario& scenario);

}  // namespace orrery
