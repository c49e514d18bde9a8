#pragma once

#include "sim/pipeline/explicit_order.hpp"

namespace orrery {

/// The time of one pass, or of two that run together.
struct PlacedPass {
  std::size_t slot = 0;  ///< Index of the first pass in the rank's order.
  int count = 1;
  Seconds start, end;
};

/// The passes of a schedule in time, with one length for each kind of pass. A pass starts when its
/// rank is free and its input is there: a forward pass needs that of the previous virtual stage, a
/// backward pass that of the next one, or on the last stage its own forward pass.
struct Replay {
  std::vector<std::vector<PlacedPass>> ranks;  ///< Each rank's passes until it waits for ever.
  Seconds end;
  /// All ranks run all their passes, without a circle of waits.
  bool complete = true;
};
Replay replay(const ExplicitOrder& order, const PassLengths& lengths, Seconds transfer);

/// The pass of another virtual stage that a pass needs, and its rank. Nothing if the input enters
/// the model, or for gradients of weights.
struct Need {
  int stage = 0;
  Slot slot;  ///< `inputs_only` is left unset in backward passes.
};
std::optional<Need> need_of(const ExplicitOrder& order, const Places& places, int stage,
                            const Slot& slot);

}  // namespace orrery
