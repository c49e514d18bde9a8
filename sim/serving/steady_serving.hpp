#pragma once

#include "sim/serving/serving_step.hpp"

namespace orrery {

/// Requests of equal length, a constant number at once.
struct SteadyLoad {
  std::int64_t input = 0, output = 0;  ///< Tokens of a request.
  std::int64_t concurrency = 0;        ///< Requests at once, over all replicas.
};

/// The state of a deployment under a steady load, in closed form.
struct SteadyState {
  double running = 0.0;              ///< Requests that one attention rank decodes at once.
  bool kv_bound = false;             ///< The cache limits `running`.
  Seconds decode_step;               ///< Time of an iteration without prompts.
  Seconds tpot;                      ///< Time of a token, with its share of the prompts.
  double output_tokens_per_s = 0.0;  ///< Rate of all replicas.
};

/// Let n requests be decoded at once over c = input + output / 2 cached tokens each, D = step(n,
/// c), and P = n input / output be the prompt tokens to be prefilled an iteration:
///
///     prompts join decodes       q = min(input clamp(n / output, 1, budget / input), budget - n)
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
