#pragma once

#include <vector>

namespace orrery {

enum class Pass { forward, backward };

/// One pass of one micro-batch through one chunk of layers. Chunk c of stage s is virtual stage
/// c p + s; without interleaving there is one chunk a stage.
struct Slot {
  Pass pass = Pass::forward;
  int chunk = 0;
  int microbatch = 0;
  bool with_next = false;  ///< Runs together with the slot that follows.
  bool operator==(const Slot&) const = default;
};

/// Most micro-batches of all chunks that a stage holds activations of at once, in chunk units.
int peak_in_flight(const std::vector<Slot>& order);

}  // namespace orrery
