#pragma once

#include <array>
#include <map>
#include <utility>
#include <vector>

#include "sim/core/units.hpp"
#include "sim/layers/pass_cost.hpp"
#include "sim/plan/placement.hpp"

namespace orrery {

/// Which ranks of an expert group wait for each other where a collective begins: those of the same
/// tensor or context group, and in the expert group all. Groups that reach into several expert
/// groups meet there ranks whose rows are alike.
class ExpertMeetings {
 public:
  /// All ranks wait for all, in every collective.
  ExpertMeetings() = default;
  explicit ExpertMeetings(const Placement& placement);

  /// By place in the expert group: when the last rank that it waits for comes, where the rank at
  /// place i comes at `ready[i]`.
  std::vector<Seconds> begin(GroupKind kind, const std::vector<Seconds>& ready) const;

 private:
  /// By kind: the first place that a place waits for. Empty: the first of all.
  std::array<std::vector<int>, group_kinds> first_;
};

/// A forward pass of one micro-batch and a backward pass of another that run together: kernels of
/// both take turns on the compute stream, and the dispatch and combine of each run beside kernels
/// of the other. Of a layer (attention with what stands before dispatch, experts, and so on):
///
///     kernels    head B | attention F | experts B  | experts F  | attention B | ...
///     exchanges         | combine' B  | dispatch F | dispatch' B | combine F  | ...
///
/// where dispatch' and combine' bring gradients. What stands in one column begins together, and the
/// next column begins when both have ended: a kernel needs the exchange of the column before, an
/// exchange the kernels, and each stream runs in order. So the length is the sum over columns of
/// the longer of the two. What one pass has more of runs by itself.
///
/// `delay_wgrad`: weight gradients, which nothing waits for, are taken out of their column. They
/// fill what an exchange leaves idle there, and the rest runs in the next one.
///
/// `meetings`: who waits for whom, where the ranks of an expert group have different rows.
///
/// Source   Megatron Core, models/common/model_chunk_schedule_plan.py; DeepSeek-V3, arXiv
///          2412.19437, figure 4.
PassCost overlapped(const PassCost& forward, const PassCost& backward, bool delay_wgrad,
                    const ExpertMeetings& meetings);

/// Those of a step, by the two that run together. They keep their addresses.
using OverlappedPasses = std::map<std::pair<const PassCost*, const PassCost*>, PassCost>;

}  // namespace orrery
