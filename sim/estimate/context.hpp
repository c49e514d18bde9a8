#pragma once

#include <map>
#include <optional>

#include "sim/cost/collective_time.hpp"
#include "sim/cost/kernel_model.hpp"
#include "sim/input/kernel_tables.hpp"
#include "sim/input/system.hpp"
#include "sim/topology/topology.hpp"

namespace orrery {

/// What all estimates on one system have in common: read and built once, then shared. An estimate
/// with a context is to the last bit the estimate without.
class EstimateContext {
 public:
  /// `options`: of all collectives of a step.
  explicit EstimateContext(const System& system, const CollectiveOptions& options = {});
  EstimateContext(const EstimateContext&) = delete;
  EstimateContext& operator=(const EstimateContext&) = delete;

  const System& system() const { return system_; }
  /// Errors: the GPU has no units for `dtype` (infeasible).
  const KernelModel& kernels(Dtype dtype);
  const CollectiveTime& collectives() const { return collectives_; }
  /// The wires of the first `gpus` GPUs. It numbers links as they are first used.
  Topology& topology(int gpus);

 private:
  System system_;
  std::optional<KernelTables> tables_;
  std::map<Dtype, KernelModel> kernels_;
  CollectiveTime collectives_;
  std::map<int, Topology> topologies_;
};

}  // namespace orrery
