#pragma once

#include <vector>

#include "sim/input/plan.hpp"
#include "sim/schedule/slot.hpp"

namespace orrery {

/// The order in which stage `stage` of `stages` runs its passes.

/// All forwards, then all backwards, last micro-batch first as its activations are the freshest
/// (Huang et al., arXiv 1811.06965).
std::vector<Slot> gpipe(int microbatches);

/// Warm-up, then one forward one backward, then cool-down (PipeDream-Flush; Narayanan et al.,
/// arXiv 2104.04473, figure 4 top). A stage holds min(m, p - s) micro-batches.
///
/// `paired`: each forward pass after the warm-up runs together with the backward pass that follows
/// it. As that must not be its own, one more is let in: Megatron-LM's overlap of expert-parallel
/// communication (megatron/core/pipeline_parallel/combined_1f1b.py), which has it for one stage
/// and for interleaved ones.
std::vector<Slot> one_f_one_b(int stage, int stages, int microbatches, bool paired = false);

/// Each stage holds `chunks` separated pieces of the model, so that the bubble is divided by
/// `chunks` (same paper, figure 4 bottom). Requires that `stages` divides `microbatches`.
std::vector<Slot> interleaved(int stage, int stages, int chunks, int microbatches,
                              bool paired = false);

std::vector<Slot> order_of_passes(ScheduleKind kind, int stage, int stages, int chunks,
                                  int microbatches, bool paired = false);

}  // namespace orrery
