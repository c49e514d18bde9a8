#include "sim/estimate/context.hpp"

namespace orrery {

EstimateContext::EstimateContext(const System& system, const CollectiveOptions& options)
    : system_{system},
      tables_{read_kernel_tables(system.gpu.name)},
      collectives_{system, options} {}

const KernelModel& EstimateContext::kernels(Dtype dtype) {
  const auto found = kernels_.find(dtype);
  if (found != kernels_.end()) return found->second;
  return kernels_.try_emplace(dtype, system_.gpu, dtype, tables_ ? &*tables_ : nullptr)
      .first->second;
}

Topology& EstimateContext::topology(int gpus) {
  const auto found = topologies_.find(gpus);
  if (found != topologies_.end()) return found->second;
  const System system = filled_evenly(system_, gpus);
  return topologies_.emplace(gpus, Topology::build(system, gpus)).first->second;
}

}  // namespace orrery
