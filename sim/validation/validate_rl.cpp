#include "sim/core/progress.hpp"
#include "sim/posttraining/rl_step.hpp"
#include "sim/validation/rl_case.hpp"
#include "sim/validation/validate_kinds.hpp"

namespace orrery {
namespace {

// Time of what a publication's quantity covers.
Seconds predicted(const RlStep& step, const std::string& quantity) {
  if (quantity == "generation_s") return step.time_of(RlPhase::generation);
  if (quantity == "logprobs_s")
    return step.time_of(RlPhase::old_logprobs) + step.time_of(RlPhase::reference);
  if (quantity == "training_s") return step.time_of(RlPhase::training);
  if (quantity == "transfer_s") return step.time_of(RlPhase::refit);
  return step.time;
}

void predict_case(const RlCase& one, ValidationReport& report) {
  const Model model = read_model(one.model, one.place / "model");
  const RlFramework framework = read_rl_framework(one.framework, one.place / "framework");
  const auto add = [&](const std::string& quantity, double measured, Seconds time) {
    Comparison row{one.id, quantity, measured, time.si(), {}};
    row.publication = one.title;
    report.comparisons.push_back(row);
  };
  // Weights alone travel without a step.
  if (one.measured.size() == 1 && one.measured.begin()->first == "transfer_s") {
    const WeightTransfer way = transfer_of(framework, one.request, one.place);
    add("transfer_s", one.measured.begin()->second,
        transfer_time(model, one.request.rollout.weights.value_or(Dtype::bf16), way));
    return;
  }
  const System system = read_system(one.system, one.place / "system");
  const RlStep step =
      rl_step(make_rl_job(model, system, framework, one.request, one.gpus, one.place));
  for (const auto& [quantity, measured] : one.measured)
    add(quantity, measured, predicted(step, quantity));
}

}  // namespace

void compare_rl_steps(const JsonValue& json, ValidationReport& report) {
  const std::vector<JsonValue> entries = json.elements();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    ProgressListener::report({Progress::Of::cases, i, entries.size()});
    const RlCase one = read_rl_case(entries[i]);
    try {
      predict_case(one, report);
    } catch (const Error& error) {
      report.refusals.push_back({one.id, error.what()});
    }
  }
}

}  // namespace orrery
