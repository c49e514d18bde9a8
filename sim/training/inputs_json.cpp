#include "sim/training/inputs_json.hpp"

#include "sim/measurements/calibration.hpp"

namespace orrery {

nlohmann::ordered_json inputs_json(const Scenario& scenario) {
  using Json = nlohmann::ordered_json;
  Json inputs = Json::object();
  const auto add = [&](const char* shelf, const std::string& name,
                       const std::optional<JsonValue>& document) {
    if (document) inputs[shelf][name] = Json::parse(document->compact());
  };
  add("models", scenario.model.name, scenario.model.document);
  add("systems", scenario.system.name, scenario.system.document);
  add("software", scenario.software.name, scenario.software.document);
  if (const auto& calibration = scenario.system.calibration)
    add("calibrations", calibration->file, calibration->document);
  const Schedule& schedule = *scenario.plan.schedule;
  if (const std::string text = schedule.file_text(); !text.empty())
    inputs["schedules"][schedule.name()] = text;
  return inputs;
}

}  // namespace orrery
