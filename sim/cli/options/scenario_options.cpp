#include "sim/cli/options/scenario_options.hpp"

#include <boost/program_options/value_semantic.hpp>

#include "sim/base/text/catalog.hpp"
#include "sim/base/text/flag_value.hpp"
#include "sim/input/measured/calibration.hpp"
#include "sim/input/scenario/plan_keys.hpp"

namespace po = boost::program_options;

namespace orrery {
namespace {

const Place command_line{};

bool is_of(const JsonValue& json, const std::string& schema) {
  const auto found = json.find("schema");
  return found && found->text() == schema;
}

// Keys that describe what is simulated rather than how it is spread, as a plan file may hold them.
std::string from_plan_file(const std::optional<JsonValue>& file, const std::string& key) {
  if (!file) return "";
  const auto value = file->find(key);
  return value ? value->text() : "";
}

}  // namespace

po::options_description scenario_options() {
  po::options_description options{"What is simulated", 100};
  const auto text = [](const std::string& name) {
    return po::value<std::string>()->value_name(name);
  };
  options.add_options()                                                                      //
      ("model", text("NAME|FILE"), "a model of the catalog, or a Hugging Face config.json")  //
      ("system", text("NAME|FILE"),
       "a system of the catalog, or a file like those in topologies")                     //
      ("gpus", text("N"), "GPUs in all; data parallelism follows from it")                //
      ("calibration", text("FILE"), "measurements of that system: orrery calibrate fit")  //
      ("plan", text("FILE"),
       "a JSON file with the keys below, or a result of --json; options override it");
  for (const PlanKey& key : plan_keys())
    options.add_options()(key.name.c_str(), text(key.access.values), key.help.c_str());
  return options;
}

std::vector<std::string> scenario_booleans() {
  std::vector<std::string> names;
  for (const PlanKey& key : plan_keys())
    if (key.access.form == KeyForm::truth) names.push_back(key.name);
  return names;
}

Model model_of(const ParsedOptions& options, const std::optional<JsonValue>& file) {
  if (options.has("model")) return read_model(options.text("model"), {"--model", ""});
  const auto value = file ? file->find("model") : std::nullopt;
  if (value && value->is_object()) return parse_model(*value);
  return read_model(
      value ? value->text() : required(options, "model", "name one: orrery list models"),
      {"--model", ""});
}

JsonValue read_plan_file(const std::string& word, const Place& place) {
  JsonValue file = JsonValue::read_file(find_in_catalog("workloads/plans", word, place));
  if (!is_of(file, "orrery.search/1")) return file;
  const JsonValue plans = file.at("plans");
  if (plans.elements().empty()) plans.fail("is empty", "search with a larger --budget");
  return plans.elements().front();
}

Scenario read_scenario(const ParsedOptions& options) {
  PlanRequest request;
  std::optional<JsonValue> file;
  int gpus = 0;
  if (options.has("plan")) {
    file = read_plan_file(options.text("plan"), command_line / "plan");
    if (const auto count = file->find("gpus")) gpus = static_cast<int>(count->integer(1, 1 << 24));
    const JsonValue plan = is_of(*file, "orrery.result/1") ? file->at("plan") : *file;
    for (const std::string& key : plan.keys()) {
      if (key == "model" || key == "system" || key == "calibration" || key == "gpus") continue;
      if (const auto value = plan.find(key)) set_plan_key(request, key, *value);
    }
  }
  for (const PlanKey& key : plan_keys())
    if (options.has(key.name)) set_plan_flag(request, key.name, options.text(key.name));
  if (options.has("gpus"))
    gpus = static_cast<int>(value_of_flag("gpus", options.text("gpus")).integer(1, 1 << 24));

  const Model model = model_of(options, file);
  const std::string in_file = options.has("system") ? "" : from_plan_file(file, "system");
  const std::string system =
      in_file.empty() ? required(options, "system", "name one: orrery list systems") : in_file;
  System cluster = read_system(system, {"--system", ""});
  const std::string measured = options.has("calibration") ? options.text("calibration")
                                                          : from_plan_file(file, "calibration");
  if (!measured.empty()) calibrate(cluster, measured, {"--calibration", ""});
  return make_scenario(model, cluster, request, gpus, command_line);
}

}  // namespace orrery
