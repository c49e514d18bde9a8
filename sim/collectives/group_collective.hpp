#pragma once

#include "sim/cluster/groups.hpp"
#include "sim/collectives/collective_cost.hpp"

namespace orrery {

/// A collective and the group that does it.
struct GroupCollective {
  CollectiveCost cost;
  GroupKind group = GroupKind::tensor;
  bool combine = false;  ///< Of an expert group: brings tokens back; else takes them there.
  /// Share of each GPU's multiprocessors that it occupies, times what a record says they count
  /// (KernelModel::share_lost_beside): kernels beside it have the rest.
  double taken = 0.0;
  /// Share of what copies reach of its memory's bandwidth that it takes from kernels that stream.
  double taken_memory = 0.0;

  Seconds time() const { return cost.time(); }
};

}  // namespace orrery
