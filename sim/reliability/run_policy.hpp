#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/units.hpp"
#include "sim/reliability/batch_ramp.hpp"
#include "sim/reliability/reliability.hpp"

namespace orrery {

/// The interval between a tier's checkpoints, in seconds or steps, or the one that costs least.
struct CheckpointRule {
  CheckpointTier tier = CheckpointTier::store;
  Seconds every;           ///< 0: unset.
  std::int64_t steps = 0;  ///< 0: unset.

  bool best() const { return every == Seconds{} && steps == 0; }
};

/// "store:10min,peer:1step", "10min" (the store), "best": sorted by tier. Errors (bad_input):
/// unknown tiers, tiers named twice, intervals that are none.
std::vector<CheckpointRule> parse_checkpoints(const std::string& text, const Place& at);

/// The condition under which a slow GPU is replaced.
struct EvictionRule {
  double longer = 0.0;  ///< Minimum lengthening of the step. 0: whenever replacing pays.
};

/// The user's choices for a run that failures interrupt.
struct RunPolicy {
  std::vector<CheckpointRule> checkpoints{CheckpointRule{}};
  std::optional<BytesPerSecond> store;  ///< Bandwidth of the whole file system; else the profile's.
  std::optional<int> spares;            ///< Units; else enough for 99 % of the time.
  bool elastic = false;                 ///< The job goes on without replicas that are away.
  std::optional<EvictionRule> evict;    ///< Unset: slow GPUs stay.
  /// Healthy GPUs differ by the profile's deviation; else all are as fast as the step assumes.
  bool speeds = false;
  BatchRamp ramp;  ///< Empty: the batch is the plan's from the first step on.
};

}  // namespace orrery
