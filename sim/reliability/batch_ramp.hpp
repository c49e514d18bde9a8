#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/error.hpp"

namespace orrery {

/// A batch that grows during a run, in one of the two forms of Megatron-LM's options.
struct BatchRamp {
  /// A step has `gbs` sequences after `from` tokens of the run. The first level begins at 0.
  struct Level {
    double from = 0.0;
    std::int64_t gbs = 0;
  };
  std::vector<Level> levels;  ///< --step-batch-size-schedule

  /// --rampup-batch-size: from `start` by `increment` to the plan's, evenly over `sequences`.
  std::int64_t start = 0, increment = 0, sequences = 0;

  bool empty() const { return levels.empty() && start == 0; }
};

/// "0:512 252B:1024 2.87T:2048", or three numbers, "192 16 9765625"; commas do as well as blanks.
/// Errors (bad_input): a batch that is none, levels that do not begin at 0, or do not rise.
BatchRamp parse_batch_ramp(const std::string& text, const Place& at);

/// A stretch of a run at one batch.
struct BatchPhase {
  std::int64_t gbs = 0;
  double steps = 0.0;  ///< Whole.
};

/// The phases of a run on `tokens` in sequences of `seq`, of which the last has the plan's `gbs`.
/// The batch grows at the first step after the tokens that carry it: steps that a failure takes
/// back move no border. Errors (bad_input): batches that do not lead to `gbs`, or a ramp that lasts
/// as long as the run or longer.
std::vector<BatchPhase> batch_phases(const BatchRamp& ramp, std::int64_t gbs, std::int64_t seq,
                                     double tokens, const Place& at);

}  // namespace orrery
