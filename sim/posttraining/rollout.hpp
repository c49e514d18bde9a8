#pragma once

#include <cstdint>
#include <vector>

#include "sim/posttraining/rl_samples.hpp"
#include "sim/serving/serving_run.hpp"

namespace orrery {

/// How samples are sent to the replicas of an engine.
enum class SampleRouting {
  groups,    ///< Equal numbers of prompts to each, with all of their samples.
  in_turn,   ///< One sample after the other.
  by_length  ///< To the replica with the least work, as if lengths were known.
};
template <>
inline const std::vector<std::string> enum_words<SampleRouting>{"groups", "in_turn", "by_length"};

/// A burst of all samples of a step, replayed until the last answer has ended.
struct Rollout {
  ServingRun run;
  Seconds time;
  /// Moments at which half and nine tenths of the answers have ended.
  Seconds half, nine_tenths;
  double busy = 0.0;  ///< Share of the time in which replicas compute.

  /// Share of the time in which the last tenth of the answers is generated.
  double tail() const { return time > Seconds{} ? 1.0 - nine_tenths / time : 0.0; }
};

/// A request of `list` for a prompt and answer, of which `shared` tokens at the begin are the same
/// for all samples of prompt `number`.
Request request_of(const Sample& sample, std::uint32_t shared, std::uint64_t number,
                   RequestList& list);

/// Replays the samples. All of a prompt's samples have its prefix in common.
/// Errors (infeasible): the KV cache does not hold the longest sample.
Rollout replay_rollout(const PricedServing& priced, const std::vector<Sample>& samples,
                       std::int64_t samples_per_prompt, SampleRouting routing, const Place& at);

/// The same in closed form, for a replica whose cache holds all of its samples at once: with S(k)
/// the share of answers of at least k tokens and tau(n, c) the time of a decode step of n requests
/// with c cached tokens together,
///
///     T = prefill + sum over k of tau(n S(k), context(k))
Seconds survival_sum(const PricedServing& priced, std::vector<Sample> of_replica,
                     std::int64_t samples_per_prompt);

}  // namespace orrery
