#pragma once

#include <array>
#include <map>
#include <utility>
#include <vector>

#include "sim/core/units.hpp"
#include "sim/layers/pass_cost.hpp"
#include "sim/plan/placement.hpp"

namespace orrery {

/// The ranks of an expert group that wait for each other at the start of a collective: those of the
/// same tensor or context group, or all of the expert group. Groups that span several expert groups
/// have ranks with equal rows there.
class ExpertSync {
 public:
  /// All ranks wait for all others, in every collective.
  ExpertSync() = default;
  explicit ExpertSync(const Placement& placement);

  /// Start of a collective, by place in the expert group: the time of the last rank that place i
  /// waits for, if the ranks are there at `ready`.
  std::vector<Seconds> begin(GroupKind kind, const std::vector<Seconds>& ready) const;

 private:
  /// The first place that a place waits for, by kind; empty means the group's first.
  std::array<std::vector<int>, group_kinds> first_;
};

/// A forward pass of one micro-batch and a backward pass of another that run together: kernels of
/// both take turns on the compute stream, and the dispatch and combine of each run concurrently
/// with kernels of the other. The columns of a layer (attention includes all before dispatch) are:
///
///     kernels    head B | attention F | experts B  | experts F  | attention B | ...
///     exchanges         | combine' B  | dispatch F | dispatch' B | combine F  | ...
///
/// Here dispatch' and combine' bring gradients. The parts of a column begin together, and the next
/// column begins when both have ended: a kernel needs the exchange of the column before, an
/// exchange the kernels, and each stream runs in order. So the length is the sum over columns of
/// the longer of the two. Surplus parts of one pass run by themselves.
///
/// Weight gradients, which nothing waits for, move out of their column if `delay_wgrad`. They fill
/// the idle time of an exchange, and the rest runs in the next column.
///
/// The ranks of an expert group may have different rows; `sync` has their waits.
///
/// Source   Megatron Core, models/common/model_chunk_schedule_plan.py; DeepSeek-V3, arXiv
///          2412.19437, figure 4.
PassCost overlapped(const PassCost& forward, const PassCost& backward, bool delay_wgrad,
                    const ExpertSync& sync);

/// Overlapped passes of a step, by the addresses of the two, which stay valid.
using OverlappedPasses = std::map<std::pair<const PassCost*, const PassCost*>, PassCost>;

}  // namespace orrery
