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
  TimeByPart gain;  ///< Critical path: what becomes shorter, part by part.
};

/// Alternatives to `plan`'s values, one key at a time on the same GPUs and batch: every other
/// switch, halves and doubles of the degrees and the micro-batch, all numbers of chunks, and other
/// numbers of layers next to the embedding and the head (neighbour_splits). Each key keeps the
/// value with the shortest step, if it is shorter than `plan`'s, simulated in the same `detail`;
/// shortest first. Values that do not divide or fill more than safe_share_of_memory are left out.
std::vector<SingleChange> single_changes(const Result& plan, EstimateContext& context,
                                         Detail detail = {});

/// A line a change: its flag, the step with it, and how much less that is. Ties are marked.
std::string changes_text(const std::vector<SingleChange>& changes);

}  // namespace orrery
