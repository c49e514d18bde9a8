#include <map>
#include <string>

#include "sim/core/catalog.hpp"
#include "sim/core/progress.hpp"
#include "sim/posttraining/rl_job.hpp"
#include "sim/posttraining/rl_step.hpp"
#include "sim/validation/validate_kinds.hpp"

namespace orrery {
namespace {

constexpr int most_gpus_of_a_step = 1 << 20;
constexpr double longest_step = 1e7;
const std::vector<std::string> quantities{"step_time_s", "generation_s", "logprobs_s", "training_s",
                                          "transfer_s"};

// A measured step of reinforcement learning, or a part of one (docs/notes/validation.md).
struct RlCase {
  std::string id, title;
  std::string model, system, framework;
  int gpus = 0;
  RlRequest request;
  std::map<std::string, double> measured;  //< Seconds by quantity.
  Place place;
};

RlCase read_rl_case(const JsonValue& entry) {
  entry.allow_only({"id", "source", "job", "measured", "notes"});
  RlCase one;
  one.place = entry.place();
  one.id = entry.at("id").text();
  one.title = entry.at("source").at("title").text();
  const JsonValue job = entry.at("job");
  read_rl_keys(one.request, job, {"model", "system", "gpus", "framework"});
  one.model = job.at("model").text();
  one.system = relative_to_file(job.at("system").text(), job.place());
  one.framework = job.at("framework").text();
  one.gpus = static_cast<int>(job.at("gpus").integer(1, most_gpus_of_a_step));
  const JsonValue measured = entry.at("measured");
  measured.allow_only(quantities);
  for (const std::string& quantity : measured.keys())
    one.measured[quantity] = measured.at(quantity).number(1e-6, longest_step);
  return one;
}

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

bool is_rl_case(const JsonValue& entry) { return entry.is_object() && entry.has("job"); }

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
