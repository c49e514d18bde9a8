#pragma once

#include <vector>

#include "sim/plan/scenario.hpp"
#include "sim/reliability/replicate_setup.hpp"
#include "sim/reliability/run_policy.hpp"
#include "sim/training/checkpoint_write.hpp"
#include "sim/training/estimate.hpp"

namespace orrery {

/// The bytes of a checkpoint and their distribution over ranks.
struct CheckpointSize {
  Bytes total;                ///< Weights and optimizer state of the model, once.
  Bytes a_gpu;                ///< Saved by the fullest GPU.
  Bytes a_unit;               ///< Saved by a node.
  std::vector<Bytes> a_rank;  ///< Saved by each writing rank, by stage; together the total.
  bool every_replica = true;  ///< Every replica saves its shards; else one saves all.
};

/// Weights and optimizer state in the bytes that the plan's memory counts. Shards of ZeRO are saved
/// by their owners, and so are equal shares of the weights; without ZeRO one replica saves all.
CheckpointSize checkpoint_size(const Scenario& scenario);

/// GPUs that are repaired and replaced as a whole: a node, which in an NVL72 rack is a tray.
int gpus_of_unit(const Scenario& scenario);
/// The racks in which the job's nodes share NVLink. Tensor groups, the ranks of a replica's stage
/// and expert groups must be of one rack where the placement has them in one.
Racks racks_of(const Scenario& scenario);
/// Nodes of these racks that the job leaves idle (filled_evenly()).
int idle_units(const Scenario& scenario);

struct CheckpointTimes {
  Seconds stall;  ///< The profile's for this tier, and device to host of the fullest GPU.
  Seconds write;  ///< Time from the stall until the checkpoint is durable.
  Seconds load;   ///< Time to read it back.
};

/// Times with idle links: a write takes the longest of store, NICs and the transfer off the GPUs.
/// Overlapped with steps it takes no less (steps_during()).
CheckpointTimes checkpoint_times(const Scenario& scenario, const CheckpointSize& size,
                                 const Reliability& profile, CheckpointTier tier,
                                 BytesPerSecond store);

/// The traffic of a checkpoint in that tier, `store` or `peer`, overlapped with steps.
CheckpointWrite checkpoint_write(const Scenario& scenario, const CheckpointSize& size,
                                 CheckpointTier tier, BytesPerSecond store);

/// A step of the job with some replicas away: the batch of a replica stays as it is.
struct AwayState {
  Seconds step;
  std::int64_t samples = 0;  ///< Sequences that it trains on.
};

/// Replicas that leave and join together: those that share a unit, experts, or a copy of all shards
/// (Sharding::dp_replicate).
int replicas_of_group(const Scenario& scenario);
/// Groups of a job; the last one may be smaller.
int groups_of_job(const Scenario& scenario);
/// True if a lost replica holds nothing that others lack: optimizer states are whole in each, or
/// their shards are kept in several copies.
bool replicas_hold_all(const Plan& plan);

/// States with 0, 1, ... groups of replicas away, to the last whose plan fits. Steps without 1, 2,
/// 4, 8, ... groups and of the last are simulated, or of as many as fill whole racks in each stage;
/// those between are linear in the number, as they differ by collectives between replicas alone.
std::vector<AwayState> away_states(const Scenario& scenario, Seconds whole);

/// The step if one GPU of that stage takes 1 + `slower` times as long as the others.
Seconds step_with_slow_gpu(const Scenario& scenario, int stage, double slower);

/// The same over the whole cluster's step, for each stage and each of `slower`, computed by
/// `workers` processes: one row a stage.
std::vector<std::vector<double>> slow_step_ratios(const Scenario& scenario,
                                                  const std::vector<double>& slower, int workers);

}  // namespace orrery
