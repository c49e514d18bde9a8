#pragma once

#include "sim/pipeline/explicit_order.hpp"

namespace orrery {

/// When a rank runs a pass, or two that run together.
struct PlacedPass {
  std::size_t slot = 0;  ///< The first of them, in the rank's order.
  int count = 1;
  Seconds start, end;
};

/// A schedule whose every pass of a kind takes equally long, transfers `transfer`. A pass starts
/// when its rank is free and what it needs is there: a forward pass needs that of the virtual stage
/// before, a backward pass that of the one behind, the last one's its forward pass.
struct Replay {
  std::vector<std::vector<PlacedPass>> ranks;  ///< As far as they get.
  Seconds end;
  /// Whether they run all their passes, or end up waiting for each other.
  bool complete = true;
};
Replay replay(const SpeltOrder& order, const PassLengths& lengths, Seconds transfer);

/// The pass of another virtual stage that a pass needs, and the rank that runs it; nothing of what
/// enters the model and of gradients of weights.
struct Need {
  int stage = 0;
  Slot slot;  ///< Of a backward pass, `inputs_only` is left open.
};
std::optional<Need> need_of(const SpeltOrder& order, const Places& places, int stage,
                            const Slot& slot);

}  // namespace orrery
