#pragma once

#include <string>
#include <vector>

#include "sim/training/estimate.hpp"

namespace orrery {

/// A plan that differs in one key from another, and how much longer its step takes than that.
struct SingleChange {
  std::string flags;  ///< "--mbs 2", "--vpp 4 --schedule interleaved"
  Seconds step;
  StepDifference difference;
  TimeByPart gain;  ///< Of the critical path: what becomes shorter, part by part.
};

/// What a search would try beside `plan`'s values, one key at a time on the same GPUs and batch:
/// every other switch, halves and doubles of the degrees and the micro-batch, all numbers of
/// chunks, and other numbers of layers beside the embedding and the head (splits_beside). Of each
/// key the value with the shortest step, if it is shorter than `plan`'s, simulated in the same
/// `detail`; shortest first. What does not divide or fills more than safe_share_of_memory is none.
std::vector<SingleChange> single_changes(const Result& plan, EstimateContext& context,
                                         Detail detail = {});

/// A line a change: its flag, the step with it, and how much less that is. Ties are marked.
std::string changes_text(const std::vector<SingleChange>& changes);

}  // namespace orrery
