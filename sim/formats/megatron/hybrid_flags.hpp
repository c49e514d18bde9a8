#pragma once

#include <string>
#include <vector>

#include "sim/plan/scenario.hpp"

namespace orrery {

/// The layers of a model with a pattern in Megatron-LM's arguments.
struct HybridFlags {
  /// The model as arguments describe it that are of all layers: attention's heads, an MLP's width.
  Model sizes;
  /// Either --hybrid-layer-pattern, a letter for each mixer and each feed-forward part, with the
  /// chunks of the pipeline and prediction modules; or --linear-attention-freq of pretrain_gpt.py,
  /// which has gated delta nets and attention in layers of both parts. Sizes of mixers with a
  /// state.
  std::vector<std::string> flags;
  bool cuts_itself = false;  ///< `flags` have the pipeline's chunks and prediction modules.
  std::vector<std::string> left_out;  ///< What no argument says, and why.
};

/// Requires a pattern. Errors (infeasible): layers that Megatron-LM lacks, two kinds of attention
/// or of MLPs, for which it has one argument each.
HybridFlags hybrid_flags(const Scenario& scenario);

}  // namespace orrery
