#pragma once

#include <cstdint>
#include <vector>

#include "sim/posttraining/rl_samples.hpp"
#include "sim/posttraining/rollout.hpp"
#include "sim/serving/serving_step.hpp"

namespace orrery {

/// A pool of engines that always has the same number of prompts under way: where all samples of one
/// have ended, the next begins, with the weights of that moment. Figures are means over time.
struct SteadyRollout {
  std::int64_t prompts_in_flight = 0;
  /// Samples in the engine at a time, of all replicas, and those that wait for a place in it; the
  /// others of the prompts under way have ended before the longest of their prompt.
  double running = 0.0, waiting = 0.0;
  double preempted = 0.0;      ///< Times that a sample loses its place, in a step.
  std::int64_t kv_tokens = 0;  ///< That the cache of a replica holds.
  double kv_share = 0.0;       ///< Share of the cache in use.
  Seconds prompt_time;         ///< From a prompt's begin to the end of its last answer.
  Seconds time;                ///< For as many prompts as a step generates.
};

/// Replays a closed loop: `prompts_in_flight` clients each send the samples of a prompt together,
/// and the next prompt when all have ended. It begins in the middle of prompts as they are found
/// at a random moment: longer ones more often, in proportion to their longest answer.
///
/// A synchronous step, in which all prompts begin together, ends with few running samples. Here new
/// samples take the places of those that have ended.
/// `priced` is the pool, or one of `parts` equal parts of it, of which each has as many of the
/// prompts: figures are those of all. Errors (infeasible): the cache does not hold the longest
/// sample.
SteadyRollout steady_rollout(const PricedServing& priced, const std::vector<Sample>& samples,
                             std::int64_t samples_per_prompt, std::int64_t prompts_in_flight,
                             SampleRouting routing, const Place& at, double parts = 1.0);

/// The same of a pool that generates batch by batch: `rollout` again and again.
SteadyRollout rollouts_in_turn(const Rollout& rollout, std::int64_t prompts);

/// Replicas of a pool that are replayed in place of all: as many as have 256 prompts under way,
/// whose mean is that of a pool of thousands to about a percent.
int replayed_replicas(int replicas, std::int64_t prompts_in_flight);

}  // namespace orrery
