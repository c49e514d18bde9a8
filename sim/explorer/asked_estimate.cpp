#include "sim/explorer/asked_estimate.hpp"

#include "sim/core/quantity_text.hpp"

namespace orrery {

void require_inputs(const ExploredState& state) {
  for (const char* key : {"model", "system", "gpus"})
    if (!state.says(key))
      fail_input({"state", ""}, "the key '" + std::string{key} + "' is missing", "name one");
  if (state.says("economics") && !state.says("tokens"))
    fail_input({"--economics", ""}, "prices of what?", "say how long to train: --tokens 15T");
}

Estimate estimate_of(const ExploredState& state, WarmInputs& inputs) {
  const StateInputs read{state, inputs};
  const Scenario scenario = read.scenario(state);
  std::optional<Economics> economics;
  if (state.says("tokens"))
    economics = read_economics(scenario.system.gpu.name, state.word("economics"));
  Estimate answer = estimate(scenario, read.context, inputs.detail());
  if (economics)
    answer.result.bill = bill_of(scenario, answer.result.step_time,
                                 parse_tokens(state.word("tokens"), {"--tokens", ""}), *economics);
  return answer;
}

}  // namespace orrery
