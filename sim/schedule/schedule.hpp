#pragma once

#include <vector>

#include "sim/core/units.hpp"
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

/// Every backward pass in two: B, gradients of the inputs, which the stage before waits for, and W,
/// gradients of the weights, which nobody waits for (Qi et al., Zero Bubble Pipeline Parallelism,
/// ICLR 2024, arXiv 2401.10241, section 2). Later stages put off more of their W, so that all hold
/// equally many micro-batches: with f, b and w the lengths of the three
///
///     zb_h1   min(m, p) held; idle (p - 1)(f + b - w), from the step's begin to its end
///     zb_h2   min(m, 2 p - 1) held; idle (p - 1)(f + b - 2 w), from a stage's first pass to its
///             last one, with m >= 2 p - 1 and w <= b, 2 w <= f + b
std::vector<Slot> zb_h1(int stage, int stages, int microbatches);
std::vector<Slot> zb_h2(int stage, int stages, int microbatches);

/// How long the passes of a stage are.
struct PassLengths {
  Seconds forward;
  Seconds inputs;   ///< B
  Seconds weights;  ///< W
};

/// The orders of all stages that the same paper's heuristic finds (section 3.1: ZB-1p and ZB-2p,
/// where no stage holds more than p or 2 p micro-batches). As many forward passes as fit run before
/// the first B; then each stage has a forward pass and a B in turn, and a W where it would wait as
/// long, or wait longer than the stage that has waited most, or where memory is full. Three choices
/// that the heuristic leaves open are tried both ways; the best is the one whose longest stage is
/// the shortest. `transfer`: between two stages.
std::vector<std::vector<Slot>> zero_bubble(const std::vector<PassLengths>& stages, int microbatches,
                                           int most_held, Seconds transfer);

/// Micro-batches enter at both ends (DeepSeek-V3, arXiv 2412.19437, section 3.2.1 and figure 5;
/// github.com/deepseek-ai/DualPipe has the order for any number of stages). Stage s holds two
/// chunks: 0 is its own stage of micro-batches 0 .. m/2 - 1, which enter at stage 0; 1 is its
/// mirror's, stage p - 1 - s, of the others, which enter at stage p - 1. In the middle a forward
/// pass of one direction runs together with a backward pass of the other; at both ends some weight
/// gradients are put off. A stage holds p + 1 passes; with f = w, b = 2 w of the whole backward
/// pass and f + b for two together it is idle for (p/2 - 1)(f&b + b - 3 w) (table 2 there).
/// Requires that p and m are even and m >= 2 p.
std::vector<Slot> dualpipe(int stage, int stages, int microbatches, bool paired = false);

/// Of a kind whose order does not depend on how long passes are.
std::vector<Slot> order_of_passes(ScheduleKind kind, int stage, int stages, int chunks,
                                  int microbatches, bool paired = false);

/// Of all stages of a plan. `lengths`: by stage, of zb-1p and zb-2p.
std::vector<std::vector<Slot>> orders_of_passes(const Plan& plan,
                                                const std::vector<PassLengths>& lengths,
                                                Seconds transfer);
/// Whether `lengths` matter there.
inline bool follows_lengths(ScheduleKind kind) {
  return kind == ScheduleKind::zb_1p || kind == ScheduleKind::zb_2p;
}

}  // namespace orrery
