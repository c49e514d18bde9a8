#pragma once

#include <vector>

#include "sim/plan/scenario.hpp"
#include "sim/reliability/run_policy.hpp"
#include "sim/training/writers.hpp"

namespace orrery {

/// What a checkpoint is made of, and how fast it moves.
struct CheckpointSize {
  Bytes total;                ///< Weights and optimizer state of the model, once.
  Bytes a_gpu;                ///< That the fullest GPU saves.
  Bytes a_unit;               ///< That a node or NVLink domain saves.
  std::vector<Bytes> a_rank;  ///< By stage: of each rank that saves; together the total.
  bool every_replica = true;  ///< Saves its shards; else one saves all.
};

/// Weights and optimizer state in the bytes that the plan's memory counts. Shards of ZeRO are saved
/// by who holds them, and so are equal shares of the weights; without ZeRO one replica saves all.
CheckpointSize checkpoint_size(const Scenario& scenario);

/// What is replaced as a whole: a node, or all nodes that share NVLink.
int gpus_of_unit(const Scenario& scenario);

struct CheckpointTimes {
  Seconds stall;  ///< The profile's, and device to host of the fullest GPU: alike for all tiers.
  Seconds write;  ///< From then until it is safe.
  Seconds load;   ///< To read it back.
};

/// Where nothing else is on the links: a write takes what is slowest of store, NICs and the way off
/// the GPUs. Beside steps it takes no less (steps_beside()).
CheckpointTimes checkpoint_times(const Scenario& scenario, const CheckpointSize& size,
                                 const Reliability& profile, CheckpointTier tier,
                                 BytesPerSecond store);

/// What a checkpoint in that tier, `store` or `peer`, sends beside the steps.
CheckpointWrite checkpoint_write(const Scenario& scenario, const CheckpointSize& size,
                                 CheckpointTier tier, BytesPerSecond store);

}  // namespace orrery
