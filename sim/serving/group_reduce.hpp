#pragma once

#include <cstdint>
#include <memory>

#include "sim/collectives/collective_time.hpp"
#include "sim/serving/serving_kernels.hpp"

namespace orrery {

/// Tensor-parallel all-reduces of an engine on a system: its own kernel inside a node, where one
/// was measured over so many GPUs, and NCCL's where that is faster (engines hand long tensors to
/// NCCL) or the group leaves the node.
class GroupReduce {
 public:
  GroupReduce(const System& system, const ServingKernels& kernels);

  /// Of `elements` of 16 bits over `gpus` neighbouring GPUs. One GPU takes no time.
  KernelTime operator()(int gpus, std::int64_t elements) const;
  /// A collective by NCCL over as many. `tensor`: as CollectiveTime counts it.
  KernelTime by_nccl(CollectiveKind kind, int gpus, Bytes tensor) const;

 private:
  System system_;
  const ServingKernels* kernels_;
  mutable std::shared_ptr<const CollectiveTime> nccl_;  // Read when first needed.
};

}  // namespace orrery
