#pragma once

#include "sim/input/reliability/run_policy.hpp"
#include "sim/input/scenario/scenario.hpp"

namespace orrery {

/// What a checkpoint is made of, and how fast it moves.
struct CheckpointSize {
  Bytes total;   ///< Weights and optimizer state of the model, once.
  Bytes a_gpu;   ///< That the fullest GPU saves.
  Bytes a_unit;  ///< That a node or NVLink domain saves.
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
  double nic_share = 0.0;  ///< Of the NICs' rate, that the write takes meanwhile.
};

/// A write takes what is slowest of store, NICs and the way off the GPUs; beside the step's own
/// traffic it gets half of a NIC at most, as two flows share a link.
CheckpointTimes checkpoint_times(const Scenario& scenario, const CheckpointSize& size,
                                 const Reliability& profile, CheckpointTier tier,
                                 BytesPerSecond store);

}  // namespace orrery
