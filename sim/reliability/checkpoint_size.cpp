#include "sim/reliability/checkpoint_size.hpp"

#include <algorithm>

#include "sim/layers/memory.hpp"
#include "sim/model/model.hpp"

namespace orrery {
namespace {

// Ranks of a stage that save, each as much as any other of them.
int writing_ranks(const Plan& plan, bool every_replica) {
  return every_replica ? plan.gpus() / plan.pp : plan.tp;
}

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
  // Where experts lie on several replicas, those save them.
  const Plan& plan = scenario.plan;
  size.every_replica = plan.zero >= 1 || plan.ep > 1;
  Bytes saved_by_all;
  for (const StageMemory& stage : memory.stages)
    saved_by_all += writing_ranks(plan, size.every_replica) * stage.optimizer;
  // Both ends of a tied embedding hold it, and it is saved once.
  for (const StageMemory& stage : memory.stages)
    size.a_rank.push_back(size.total * (stage.optimizer / saved_by_all));
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
  const Seconds over_nics = size.a_unit / line;
  const Seconds in_store = tier == CheckpointTier::store ? size.total / store : Seconds{};
  times.write = std::max({over_nics, in_store, copy});
  times.load = times.write;
  return times;
}

CheckpointWrite checkpoint_write(const Scenario& scenario, const CheckpointSize& size,
                                 CheckpointTier tier, BytesPerSecond store) {
  CheckpointWrite write{size.a_rank, size.every_replica, {}, scenario.system.gpu.host};
  if (tier == CheckpointTier::store) write.store = store;
  return write;
}

}  // namespace orrery
