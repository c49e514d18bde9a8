#include "sim/explorer/batches_reply.hpp"

#include <algorithm>

#include "sim/core/shell_word.hpp"
#include "sim/explorer/knobs.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/training/result_json.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t most_times = 16;  // Larger and smaller batches than the state's.

std::vector<std::string> batches_of(const ExploredState& state, WarmInputs& inputs) {
  const StateInputs read{state, inputs};
  std::vector<std::string> words;
  for (const Knob& knob : knobs_of(state, read)) {
    if (knob.name != "gbs" || knob.now.empty()) continue;
    const std::int64_t now = std::stoll(knob.now);
    for (const KnobValue& value : knob.values) {
      const std::int64_t batch = std::stoll(value.word);
      if (value.why_not.empty() && batch * most_times >= now && batch <= most_times * now)
        words.push_back(value.word);
    }
  }
  return words;
}

std::string command_of(const ExploredState& state, const std::vector<std::string>& batches) {
  std::string text = "orrery sweep run";
  const auto add = [&](const std::string& key) {
    if (state.says(key)) text += " --" + key + " " + shell_word(state.word(key));
  };
  for (const char* key : {"model", "system", "calibration", "gpus"}) add(key);
  for (const PlanKey& key : plan_keys())
    if (key.name != "gbs") add(key.name);
  std::string list;
  for (const std::string& batch : batches) list += (list.empty() ? "" : ",") + batch;
  return text + " --sweep gbs=" + list + " --out batches";
}

}  // namespace

void batches_reply(const ExploredState& state, WarmInputs& inputs, const SendPart& send) {
  require_inputs(state);
  const std::vector<std::string> batches = batches_of(state, inputs);
  send(http_ok, line_of({{"command", command_of(state, batches)}, {"batches", batches.size()}}));
  for (const std::string& batch : batches) {
    Json line{{"gbs", std::stoll(batch)}};
    try {
      const Estimate found =
          estimate_of(state.with("gbs", batch).with("tokens", "").with("economics", ""), inputs);
      const Json result =
          Json::parse(result_json(found.result, {.about_this_run = false, .inputs = false}));
      for (const char* key : {"step_time_s", "tokens_per_s_per_gpu"}) line[key] = result[key];
      line["memory_bytes"] = result["memory"]["peak_bytes"];
      line["capacity_bytes"] = result["memory"]["capacity_bytes"];
    } catch (const Error& error) {
      line["why_not"] = error.what();
    }
    send(http_ok, line_of(line));
  }
}

}  // namespace orrery
