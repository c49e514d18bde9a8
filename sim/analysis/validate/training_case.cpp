#include "sim/analysis/validate/training_case.hpp"

#include <algorithm>
#include <optional>

#include "sim/base/text/catalog.hpp"
#include "sim/base/text/choice.hpp"
#include "sim/input/scenario/plan_keys.hpp"

namespace orrery {
namespace {

// Facts about how a run was made that have no key in a plan: the framework is turned into a
// software, the others are read by software_of() or do not change the step.
const std::vector<std::string> facts{"framework", "compile"};

}  // namespace

std::vector<TrainingCase> read_training_cases(const JsonValue& json) {
  std::vector<TrainingCase> cases;
  for (const JsonValue& entry : json.elements()) {
    entry.allow_only(
        {"id", "source", "system", "gpus", "model", "plan", "measured", "peers", "notes"});
    TrainingCase one{entry.at("id").text(),
                     entry.at("source").at("title").text(),
                     entry.at("system").text(),
                     static_cast<int>(entry.at("gpus").integer(1, 1 << 24)),
                     entry.at("model"),
                     entry.at("plan"),
                     {},
                     {},
                     {}};
    const JsonValue measured = entry.at("measured");
    if (const auto time = measured.find("step_time_s"))
      one.step_time = Seconds{time->number(1e-6, 1e6)};
    if (const auto memory = measured.find("peak_memory_bytes"))
      one.peak_memory = Bytes{memory->number(1.0, 1e15)};
    if (const auto peers = entry.find("peers"))
      for (const std::string& peer : peers->keys())
        one.peers[peer] = Seconds{peers->at(peer).number(1e-6, 1e6)};
    cases.push_back(std::move(one));
  }
  return cases;
}

namespace {

// The first rule of workloads/software_of_publications.json that holds.
std::optional<JsonValue> rule_of(const TrainingCase& training_case) {
  const JsonValue table =
      JsonValue::read_file(find_in_catalog("workloads", "software_of_publications", {}));
  const auto has_in = [](const std::string& text) {
    return [&text](const std::string& part) { return text.find(part) != std::string::npos; };
  };
  const auto named = [](const JsonValue& object, const char* key) {
    const auto found = object.find(key);
    return found ? found->text() : std::string{};
  };
  for (const JsonValue& rule : table.at("rules").elements()) {
    rule.allow_only({"title_contains", "framework", "id_contains", "model_contains",
                     "system_starts", "dtype", "software", "plan", "source"});
    const auto holds = [&](const char* key, auto test) {
      const auto wanted = rule.find(key);
      return !wanted || test(wanted->text());
    };
    const auto is = [&](const char* key) {
      return [text = named(training_case.plan, key)](const std::string& wanted) {
        return text == wanted;
      };
    };
    const std::string model = named(training_case.model, "name");
    if (holds("title_contains", has_in(training_case.title)) &&
        holds("id_contains", has_in(training_case.id)) && holds("model_contains", has_in(model)) &&
        holds("system_starts",
              [&](const std::string& part) { return training_case.system.starts_with(part); }) &&
        holds("framework", is("framework")) && holds("dtype", is("dtype")))
      return rule;
  }
  return std::nullopt;
}

}  // namespace

std::string software_of(const TrainingCase& training_case) {
  if (const auto named = training_case.plan.find("software")) return named->text();
  const auto rule = rule_of(training_case);
  return rule ? rule->at("software").text() : "";
}

Scenario scenario_of(const TrainingCase& training_case) {
  PlanRequest request;
  if (const auto rule = rule_of(training_case))
    if (const auto published = rule->find("plan")) read_plan(request, *published);
  for (const std::string& key : training_case.plan.keys()) {
    if (key == "ep_dispatcher") {  // As the MoE model zoo writes it.
      request.moe_dispatcher = choice<int>(training_case.plan.at(key), {"A2A", "DeepEP"}) == 1
                                   ? ExpertDispatcher::deepep
                                   : ExpertDispatcher::all_to_all;
      continue;
    }
    if (std::find(facts.begin(), facts.end(), key) != facts.end()) continue;
    if (const auto value = training_case.plan.find(key)) set_plan_key(request, key, *value);
  }
  request.software = software_of(training_case);
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
  return make_scenario(model, read_system(training_case.system, at), request, training_case.gpus,
                       at);
}

}  // namespace orrery
