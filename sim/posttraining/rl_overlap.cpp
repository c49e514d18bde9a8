#include "sim/posttraining/rl_overlap.hpp"

#include <algorithm>
#include <cmath>

#include "sim/serving/steady_serving.hpp"

namespace orrery {

SteadyRollout steady_rollout(const PricedServing& priced, const std::vector<Sample>& samples,
                             std::int64_t samples_per_prompt, double prompts_in_flight,
                             const Place& at) {
  const auto each = static_cast<std::size_t>(samples_per_prompt);
  const auto prompts = static_cast<double>(samples.size() / each);
  double longest = 0.0, tokens = 0.0, input = 0.0;
  for (std::size_t first = 0; first < samples.size(); first += each) {
    std::uint32_t most = 1;
    for (std::size_t i = first; i < first + each; ++i) {
      most = std::max(most, samples[i].response);
      tokens += samples[i].response;
    }
    longest += most;
    input += samples[first].prompt;
  }
  SteadyRollout rollout;
  rollout.prompts_in_flight = prompts_in_flight;
  rollout.longest = longest / prompts;
  const double mean = tokens / static_cast<double>(samples.size());
  const auto group = static_cast<double>(samples_per_prompt);
  rollout.running = prompts_in_flight * group * mean / rollout.longest;
  // A prompt's tokens are computed once, for all of its samples.
  const auto tokens_of = [](double value) {
    return std::max<std::int64_t>(1, std::llround(value));
  };
  const SteadyLoad load{tokens_of(input / prompts / group), tokens_of(mean),
                        tokens_of(rollout.running)};
  const SteadyState state = steady_state(priced, load, at);
  rollout.prompt_time = rollout.longest * state.tpot;
  rollout.time = prompts / prompts_in_flight * rollout.prompt_time;
  const Seconds at_full_rate{tokens / state.output_tokens_per_s};
  if (at_full_rate > 1.001 * rollout.time) {
    rollout.slots_full = true;
    rollout.prompt_time = prompts_in_flight / prompts * at_full_rate;
    rollout.time = at_full_rate;
  }
  return rollout;
}

}  // namespace orrery
