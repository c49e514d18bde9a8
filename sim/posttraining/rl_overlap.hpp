#pragma once

#include <cstdint>
#include <vector>

#include "sim/posttraining/rl_samples.hpp"
#include "sim/serving/serving_step.hpp"

namespace orrery {

/// A pool of engines that always has the same number of prompts under way: where all samples of one
/// have ended, the next begins, with the weights of that moment.
struct SteadyRollout {
  double prompts_in_flight = 0.0;
  double running = 0.0;     ///< Samples that run at a time, of all replicas; the others of a prompt
                            ///< have ended before its longest.
  double longest = 0.0;     ///< Tokens of the longest answer to a prompt, on average.
  Seconds prompt_time;      ///< From a prompt's begin to the end of its longest answer.
  Seconds time;             ///< For as many prompts as a step trains on.
  bool slots_full = false;  ///< The engine runs fewer at a time than are under way.
};

/// With P prompts a step and F of them under way, each of whose longest of G answers has L tokens,
/// m on average:
///
///     running = F G m / L         samples at any time
///     T = P / F x L x tpot(running)
///
/// with the time of a token in a steady state of so many requests (steady_serving.hpp), whose share
/// of prompts counts each prompt once. If the engine's slots or its cache hold fewer, samples wait,
/// and T is the tokens of a step at the engine's rate.
/// Errors (infeasible): the cache does not hold one sample.
SteadyRollout steady_rollout(const PricedServing& priced, const std::vector<Sample>& samples,
                             std::int64_t samples_per_prompt, double prompts_in_flight,
                             const Place& at);

}  // namespace orrery
