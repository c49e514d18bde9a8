#pragma once

#include "sim/cluster/system.hpp"
#include "sim/training/estimate.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery {

/// Two stages of two layers, four micro-batches, every step of the pipeline visible:
///
///     stage 0   F0 F1 .. B0 F2 B1 F3 B2 .. B3      1F1B: one warm-up pass on stage 0
///     stage 1   .. F0 B0 F1 B1 F2 B2 F3 B3
inline Scenario two_stages() {
  return scenario_of(small_gpt(4, 1024, 8, 1024), read_system("two-gpus", test_place),
                     plan_request(1, 2, 1, 4, 512, "megatron-core"), 2);
}

/// 16 GPUs in four nodes: a tensor group a node, two chunks on each of two stages, two replicas
/// with ZeRO whose traffic overlaps the passes.
inline Scenario interleaved_replicas() {
  PlanRequest request = plan_request(4, 2, 1, 4, 512, "megatron-core");
  request.vpp = 2;
  request.zero = 1;
  request.dp_overlap = true;
  return scenario_of(small_gpt(4, 1024, 8, 1024), read_system("four-by-four", test_place), request,
                     16);
}

}  // namespace orrery
