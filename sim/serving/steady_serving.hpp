#pragma once

#include "sim/serving/serving_step.hpp"

namespace orrery {

/// Requests of equal length, so many at once, for ever.
struct SteadyLoad {
  std::int64_t input = 0, output = 0;  ///< Tokens of a request.
  std::int64_t concurrency = 0;        ///< Requests at once, over all replicas.
};

/// What a deployment does under a steady load, in closed form.
struct SteadyState {
  double running = 0.0;              ///< Requests that one attention rank decodes at once.
  bool kv_bound = false;             ///< Fewer than asked for: the cache holds no more.
  Seconds decode_step;               ///< Of an iteration without prompts.
  Seconds tpot;                      ///< Of an iteration with its share of the prompts.
  double output_tokens_per_s = 0.0;  ///< Of all replicas.
};

/// With n requests decoded at once over c = input + output / 2 cached tokens each, D = step(n, c),
/// and P = n input / output prompt tokens to be prefilled an iteration:
///
///     prompts beside decodes     q = min(input clamp(n / output, 1, budget / input), budget - n)
///                                T = D + P / q (step(n, c, prompt of q) - D)
///     prompts stop decoding      k = clamp(budget / input, 1, n)
///                                T = D + P / (k input) step(k prompts)
///
/// n is the least of the slots, of max_seqs and of what the cache holds at c tokens each. Over p
/// stages p batches of n / p are under way, and an iteration of one takes p times the longest stage
/// or all stages with their hops, whichever is longer. Errors (infeasible): the cache does not hold
/// one request.
SteadyState steady_state(const PricedServing& priced, const SteadyLoad& load, const Place& at);

}  // namespace orrery
