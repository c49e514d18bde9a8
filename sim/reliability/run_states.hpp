#pragma once

#include <vector>

#include "sim/plan/scenario.hpp"
#include "sim/reliability/run_policy.hpp"
#include "sim/training/checkpoint_write.hpp"
#include "sim/training/estimate.hpp"

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

/// A step of the job with so many of its replicas away: the batch of a replica stays as it is.
struct AwayState {
  Seconds step;
  std::int64_t samples = 0;  ///< Sequences that it trains on.
};

/// Replicas whose ranks a unit of GPUs holds, as Placement lays them: they stop with it.
int replicas_of_unit(const Scenario& scenario);
/// Whether a lost replica takes nothing with it that others have not: optimizer states are whole in
/// each, or their shards are kept in several copies.
bool replicas_hold_all(const Plan& plan);

/// Of 0, 1, ... replicas away, as many as `units` units stop. It ends with the last that can run:
/// whose plan divides and fits. Where units stop several replicas, the numbers between are as the
/// next larger one.
std::vector<AwayState> away_states(const Scenario& scenario, Seconds whole, int units);

/// With more units away at once even an elastic job waits.
inline constexpr int most_units_away = 8;

/// The step if one GPU of that stage takes 1 + `slower` times as long as the others.
Seconds step_with_slow_gpu(const Scenario& scenario, int stage, double slower);

/// The same over the whole cluster's step, of each stage and each of `slower`, in `workers`
/// processes: one after the other, a stage's numbers together.
std::vector<std::vector<double>> slow_step_ratios(const Scenario& scenario,
                                                  const std::vector<double>& slower, int workers);

}  // namespace orrery
