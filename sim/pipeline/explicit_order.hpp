#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/pipeline/schedule.hpp"

namespace orrery {

/// A schedule spelt out for one pipeline: which virtual stages each rank holds, and all its passes.
struct SpeltOrder {
  int stages = 1;
  int chunks = 1;  ///< That a rank holds.
  int microbatches = 1;
  int copies = 1;                       ///< Of the model: as Schedule::copies().
  bool recomputes_for_weights = false;  ///< As the schedule says.
  /// By stage, then chunk.
  std::vector<std::vector<int>> holds;
  Orders orders;

  bool operator==(const SpeltOrder&) const = default;
  int virtual_stages() const { return stages * chunks / copies; }
  int copy_of(int chunk) const { return chunk * copies / chunks; }
  /// Whether a micro-batch goes through the chunks of that number.
  bool passes(int microbatch, int chunk) const {
    return copies == 1 || (2 * microbatch < microbatches) == (copy_of(chunk) == 0);
  }
};

/// Where the virtual stages of a sound order lie.
class Places {
 public:
  explicit Places(const SpeltOrder& order);
  ChunkPlace operator()(int virtual_stage, int copy) const {
    return places_[static_cast<std::size_t>(copy * virtual_stages_ + virtual_stage)];
  }

 private:
  int virtual_stages_;
  std::vector<ChunkPlace> places_;
};

/// What `schedule` has its ranks run. `lengths` and `transfer`: as Schedule::orders().
SpeltOrder spelt_out(const Schedule& schedule, const Pipeline& pipeline,
                     const std::vector<PassLengths>& lengths, Seconds transfer);

/// As a file has it: "F3", with several chunks "F3.1"; F forward, B backward, I gradients of the
/// inputs alone, W of the weights.
std::string pass_name(const Slot& slot, int chunks);

/// What is wrong with a schedule, and what to write instead.
struct OrderFault {
  int stage = 0;  ///< Whose rank is at fault.
  std::string problem, remedy;
};

/// Ranks that hold what no pipeline here can run: virtual stages that are missing, held twice or
/// not next to each other. Sizes must agree.
std::optional<OrderFault> fault_of_places(const SpeltOrder& order);
/// Passes that are missing, twice or in the wrong order on their own rank; pairs that cannot run
/// together. Chunks and micro-batches must be in range.
std::optional<OrderFault> fault_of_passes(const SpeltOrder& order);
/// Ranks that wait for each other in a circle, which it names pass by pass, and tensors that a rank
/// takes in another order than they are sent in. Everything else must be sound.
std::optional<OrderFault> fault_of_waits(const SpeltOrder& order);

}  // namespace orrery
