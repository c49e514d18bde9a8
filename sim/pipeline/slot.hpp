#pragma once

#include <vector>

namespace orrery {

enum class Pass { forward, backward, weight_gradient };

/// One pass of one micro-batch through one of the chunks of layers that a rank of the pipeline
/// holds; Schedule::virtual_stage says which part of the model a chunk is.
struct Slot {
  Pass pass = Pass::forward;
  int chunk = 0;
  int microbatch = 0;
  bool with_next = false;  ///< Runs together with the slot that follows.
  /// Of a backward pass: it computes gradients of its inputs alone, which other stages wait for; a
  /// later slot has the weights' (Qi et al., arXiv 2401.10241: B and W).
  bool inputs_only = false;
  bool operator==(const Slot&) const = default;
};

/// What each rank of a pipeline runs, stage by stage.
using Orders = std::vector<std::vector<Slot>>;

/// Whether a micro-batch's gradients of the chunk's weights are complete with it.
inline bool completes_gradients(const Slot& slot) {
  return slot.pass != Pass::forward && !slot.inputs_only;
}

/// Most micro-batches of all chunks that a stage holds activations of at once, in chunk units.
/// They are held until the last gradient that needs them is known.
int peak_in_flight(const std::vector<Slot>& order);

}  // namespace orrery
