#include "sim/analysis/run/checkpoint_size.hpp"

#include <algorithm>

#include "sim/cost/memory/memory.hpp"
#include "sim/input/model/model.hpp"

namespace orrery {
namespace {

constexpr double most_nic_share = 0.5;

}  // namespace

CheckpointSize checkpoint_size(const Scenario& scenario) {
  const MemoryReport memory = memory_of(scenario);
  CheckpointSize size;
  // BLOOM's checkpoints have 14 bytes a parameter, 2 and 12 (bigscience-workshop,
  // tr11-176B-ml/README.md). Where weights are shards, the optimizer's state has them.
  const double state = scenario.software.state_bytes;
  const double saved =
      state + (scenario.plan.shards_weights() ? 0.0 : scenario.software.held_weight_bytes);
  size.total = Bytes{static_cast<double>(count_parameters(scenario.model).total) * saved};
  Bytes optimizer;
  for (const StageMemory& stage : memory.stages) optimizer = std::max(optimizer, stage.optimizer);
  size.a_gpu = optimizer * (saved / state);
  // Ranks of a unit lie in one stage, or hold no more than as if they did.
  size.a_unit = std::min(size.total, size.a_gpu * gpus_of_unit(scenario));
  return size;
}

int gpus_of_unit(const Scenario& scenario) {
  return std::min(scenario.system.nvlink_domain, scenario.plan.gpus());
}

CheckpointTimes checkpoint_times(const Scenario& scenario, const CheckpointSize& size,
                                 const Reliability& profile, CheckpointTier tier,
                                 BytesPerSecond store) {
  const System& system = scenario.system;
  const Seconds copy = size.a_gpu / system.gpu.host;
  CheckpointTimes times;
  times.stall = profile.stall + copy;
  if (tier == CheckpointTier::local) {
    times.load = copy;
    return times;
  }
  const double nics =
      static_cast<double>(system.nics_per_node) * gpus_of_unit(scenario) / system.gpus_per_node;
  const BytesPerSecond line = system.nic * (nics * system.network_efficiency);
  const Seconds over_nics = size.a_unit / (line * most_nic_share);
  const Seconds in_store = tier == CheckpointTier::store ? size.total / store : Seconds{};
  times.write = std::max({over_nics, in_store, copy});
  times.nic_share = size.a_unit / (line * times.write);
  times.load = std::max({size.a_unit / line, in_store, copy});
  return times;
}

}  // namespace orrery
