#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/pipeline/schedule.hpp"

namespace orrery {

/// A schedule written out for one pipeline: the virtual stages and all passes of each rank.
struct ExplicitOrder {
  int stages = 1;
  int chunks = 1;  ///< Chunks a rank.
  int microbatches = 1;
  int copies = 1;                       ///< Copies of the model, see Schedule::copies().
  bool recomputes_for_weights = false;  ///< See Schedule::recomputes_for_weights().
  /// Virtual stages, by stage and chunk.
  std::vector<std::vector<int>> holds;
  Orders orders;

  bool operator==(const ExplicitOrder&) const = default;
  int virtual_stages() const { return stages * chunks / copies; }
  int copy_of(int chunk) const { return chunk * copies / chunks; }
  /// A micro-batch visits only chunks of its own copy of the model.
  bool passes(int microbatch, int chunk) const {
    return copies == 1 || (2 * microbatch < microbatches) == (copy_of(chunk) == 0);
  }
};

/// The rank and chunk of each virtual stage of a sound order.
class Places {
 public:
  explicit Places(const ExplicitOrder& order);
  ChunkPlace operator()(int virtual_stage, int copy) const {
    return places_[static_cast<std::size_t>(copy * virtual_stages_ + virtual_stage)];
  }

 private:
  int virtual_stages_;
  std::vector<ChunkPlace> places_;
};

/// Writes `schedule` out; `lengths` and `transfer` as in Schedule::orders().
ExplicitOrder explicit_order(const Schedule& schedule, const Pipeline& pipeline,
                             const std::vector<PassLengths>& lengths, Seconds transfer);

/// Name of a pass in schedule files: "F3", with several chunks "F3.1". F is a forward and B a
/// backward pass, I the gradients of the inputs alone, W those of the weights.
std::string pass_name(const Slot& slot, int chunks);

/// An error in a schedule and its remedy.
struct OrderFault {
  int stage = 0;  ///< The faulty rank.
  std::string problem, remedy;
};

/// Finds virtual stages that are missing, repeated or not on neighbours. Sizes must agree.
std::optional<OrderFault> fault_of_places(const ExplicitOrder& order);
/// Finds passes that are missing, repeated or in the wrong order on their own rank, and pairs that
/// cannot run together. Chunks and micro-batches must be in range.
std::optional<OrderFault> fault_of_passes(const ExplicitOrder& order);
/// Finds ranks that wait for each other in a circle, which the message names pass by pass, and
/// tensors that are received in another order than sent. Everything else must be sound.
std::optional<OrderFault> fault_of_waits(const ExplicitOrder& order);

}  // namespace orrery
