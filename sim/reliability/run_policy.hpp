#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/units.hpp"
#include "sim/reliability/batch_ramp.hpp"
#include "sim/reliability/reliability.hpp"

namespace orrery {

/// How often a tier gets a checkpoint: every so many seconds or steps, or as often as costs the
/// least.
struct CheckpointRule {
  CheckpointTier tier = CheckpointTier::store;
  Seconds every;           ///< 0: not said.
  std::int64_t steps = 0;  ///< 0: not said.

  bool best() const { return every == Seconds{} && steps == 0; }
};

/// "store:10min,peer:1step", "10min" (the store), "best": sorted by tier. Errors (bad_input):
/// unknown tiers, tiers named twice, intervals that are none.
std::vector<CheckpointRule> parse_checkpoints(const std::string& text, const Place& at);

/// When a slow GPU is replaced.
struct EvictionRule {
  double longer = 0.0;  ///< It makes the step so much longer. 0: whenever it pays.
};

/// What the user decides about a run that failures interrupt.
struct RunPolicy {
  std::vector<CheckpointRule> checkpoints{CheckpointRule{}};
  std::optional<BytesPerSecond> store;  ///< Of the whole file system; else as the profile has it.
  std::optional<int> spares;            ///< Units; else as many as do in 99 % of the time.
  bool elastic = false;                 ///< The job goes on without replicas that are away.
  std::optional<EvictionRule> evict;    ///< Nothing: slow GPUs stay.
  /// Healthy GPUs differ as the profile has it; else all are as fast as the step's prices have it.
  bool speeds = false;
  BatchRamp ramp;  ///< Empty: the batch is the plan's from the first step on.
};

}  // namespace orrery
