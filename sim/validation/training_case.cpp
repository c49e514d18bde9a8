#include "sim/validation/training_case.hpp"

#include <algorithm>
#include <optional>

#include "sim/core/catalog.hpp"
#include "sim/core/choice.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/validation/published_plan.hpp"

namespace orrery {
namespace {

// Facts about how a run was made that have no key in a plan: published_plan() reads the framework,
// and the others do not change the step.
const std::vector<std::string> not_of_the_plan{"framework", "compile"};

}  // namespace

std::vector<TrainingCase> read_training_cases(const JsonValue& json) {
  std::vector<TrainingCase> cases;
  for (const JsonValue& entry : json.elements()) {
    entry.allow_only(
        {"id", "source", "system", "gpus", "model", "plan", "measured", "peers", "notes"});
    TrainingCase one{entry.at("id").text(),
                     entry.at("source").at("title").text(),
                     entry.at("source").at("locator").text(),
                     entry.at("system").text(),
                     static_cast<int>(entry.at("gpus").integer(1, 1 << 24)),
                     entry.at("model"),
                     entry.at("plan"),
                     {},
                     {},
                     {},
                     {}};
    const JsonValue measured = entry.at("measured");
    if (const auto time = measured.find("step_time_s"))
      one.step_time = Seconds{time->number(1e-6, 1e6)};
    if (const auto memory = measured.find("peak_memory_bytes"))
      one.peak_memory = Bytes{memory->number(1.0, 1e15)};
    if (const auto stage = measured.find("peak_memory_stage"))
      one.peak_memory_stage = static_cast<int>(stage->integer(0, 1 << 20));
    if (const auto peers = entry.find("peers"))
      for (const std::string& peer : peers->keys())
        one.peers[peer] = Seconds{peers->at(peer).number(1e-6, 1e6)};
    cases.push_back(std::move(one));
  }
  return cases;
}

Scenario scenario_of(const TrainingCase& as_written) {
  const TrainingCase training_case = as_published(as_written);
  PlanRequest request;
  const PublishedPlan published = published_plan(training_case);
  for (const JsonValue& plan : published.plans) read_plan(request, plan);
  for (const std::string& key : training_case.plan.keys()) {
    if (key == "ep_dispatcher") {  // As the MoE model zoo writes it.
      request.moe_dispatcher = choice<int>(training_case.plan.at(key), {"A2A", "DeepEP"}) == 1
                                   ? ExpertDispatcher::deepep
                                   : ExpertDispatcher::all_to_all;
      continue;
    }
    if (std::find(not_of_the_plan.begin(), not_of_the_plan.end(), key) != not_of_the_plan.end())
      continue;
    if (const auto value = training_case.plan.find(key)) set_plan_key(request, key, *value);
  }
  const auto software = training_case.plan.find("software");
  request.software = software ? software->text() : published.software;
  // Megatron Core's default (ModelParallelConfig.expert_tensor_parallel_size), where a run of its
  // command line does not say otherwise.
  const auto framework = training_case.plan.find("framework");
  if (framework && framework->text() == "NeMo/Megatron" && request.ep > 1 &&
      !training_case.plan.has("etp"))
    request.etp = request.tp;
  const Place at = training_case.plan.place();
  const Model model = parse_model(training_case.model);
  // A case's model is the run's own, with sequences as long as the run's.
  if (!request.seq) request.seq = model.max_sequence;
  return make_scenario(model, read_system(beside_file(training_case.system, at), at), request,
                       training_case.gpus, at);
}

}  // namespace orrery
