#include "sim/cli/scenario_options.hpp"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <set>

#include "sim/cli/terminal.hpp"
#include "sim/core/catalog.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/value_list.hpp"
#include "sim/engine/network_model.hpp"
#include "sim/layers/memory.hpp"
#include "sim/measurements/calibration.hpp"
#include "sim/pipeline/schedule_file.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/plan/unlikely_inputs.hpp"

namespace orrery {

void add_memory_option(Options& options, Detail& into) {
  into.most_memory = tolerated_share_of_memory;
  options.group("Memory check");
  options.add("ignore-memory", "",
              "time a plan also where it cannot fit in the GPUs' memory; marked so",
              [&into](const std::string&, const Place&) {
                into.most_memory = std::numeric_limits<double>::infinity();
              });
}

void add_host_memory_option(Options& options, Bytes& into) {
  // A plan that fits in 6 GB takes a minute at the most: one that needs more by mistake is refused.
  constexpr Bytes most{6e9};
  into = std::min(most, Bytes{0.5 * static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
                              static_cast<double>(::sysconf(_SC_PAGESIZE))});
  options.group("Memory of this machine");
  options.add("host-memory", "BYTES",
              "what the simulation may take of this machine's memory (default: half, at most 6 GB, "
              "some 20 million tasks)",
              into, parse_bytes);
}

namespace {

// The simulator is chosen for the process, which runs one command.
void choose_simulator(const std::string& word, const Place& at) {
  static std::optional<SimulatorChoice> chosen;
  chosen.emplace(choice<Simulator>(word, at, "is not a simulator"));
}

}  // namespace

void add_simulator(Options& options) {
  options.group("Simulation engine");
  options.add("simulator", "own|simgrid",
              "network model that simulates how flows share links: Orrery's own (default), or "
              "SimGrid's, which is slower and gives the same answer",
              choose_simulator);
}

namespace {

bool is_of(const JsonValue& json, const std::string& schema) {
  const auto found = json.find("schema");
  return found && found->text() == schema;
}

using PlanFile = std::optional<JsonValue>;

// Keys of a plan file that are no part of the parallelism: what is simulated, the arguments and
// measurements of an imported run, and its batch ramp.
bool names_an_input(const std::string& key) {
  static const std::vector<std::string> keys{"model",  "system",    "calibration", "gpus",
                                             "inputs", "arguments", "measured",    "ramp"};
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

std::string from_plan_file(const PlanFile& file, const std::string& key) {
  const auto value = file ? file->find(key) : std::nullopt;
  return value ? value->text() : "";
}

// A file stands alone, so that it means the same tomorrow; a catalog that has changed since may
// make a user expect otherwise.
template <class Thing>
Thing as_carried(Thing thing, const std::string& option, const std::string& folder,
                 Thing (*read)(const std::string&, const Place&)) {
  const std::vector<std::string> known = list_catalog(folder);
  const bool has_it = std::find(known.begin(), known.end(), thing.name) != known.end();
  if (has_it && read(thing.name, {}).document != thing.document)
    print_note("the " + option + " '" + thing.name +
               "' is taken as the plan file holds it; that of the catalog differs (--" + option +
               " " + thing.name + " takes it)");
  return thing;
}

// The word of an option or else of the file, which may hold the thing itself.
template <class Thing>
Thing input(const std::optional<std::string>& given, const PlanFile& file,
            const std::string& option, const std::string& folder,
            Thing (*read)(const std::string&, const Place&), Thing (*parse)(const JsonValue&)) {
  const Place place = command_line / option;
  const std::string word = given ? "" : from_plan_file(file, option);
  if (!given && word.empty())
    fail_input(command_line, "--" + option + " is missing",
               "name one: orrery list " + option + "s");
  if (given) return read(*given, place);
  if (const auto whole = carried(*file, option + "s", word))
    return as_carried(parse(*whole), option, folder, read);
  return read(word, place);
}

void read_plan_of_file(PlanRequest& request, const JsonValue& file) {
  for (const KeyOfPlanFile& key : keys_of_plan_file(file)) {
    if (names_an_input(key.name)) continue;
    if (key.name == "schedule" && key.held)
      request.schedule = &user_schedule(key.value.text(), key.held->text());
    else
      set_plan_key(request, key.name, key.value);
  }
}

}  // namespace

void add_scenario(Options& options, ScenarioOptions& into) {
  options.group("What is simulated");
  options.add("model", "NAME|FILE", "a model of the catalog, or a Hugging Face config.json",
              into.model);
  options.add("system", "NAME|FILE", "a system of the catalog, or a file like those in topologies",
              into.system);
  options.add("gpus", "N", "GPUs in all; data parallelism follows from it", into.gpus,
              whole(1, 1 << 24));
  options.add("calibration", "FILE", "measurements of the system: orrery calibrate fit",
              into.calibration);
  options.add("plan", "FILE",
              "a JSON file with the keys below, or a result of --json; options override it",
              into.plan);
  for (const PlanKey& key : plan_keys())
    options.add(key.name, key.access.values, key.help, into.keys);
}

JsonValue read_plan_file(const std::string& path) {
  JsonValue file = JsonValue::read_file(path);
  if (!is_of(file, "orrery.search/1")) return file;
  const JsonValue plans = file.at("plans");
  if (plans.elements().empty()) plans.fail("is empty", "search with a longer --time-limit");
  const JsonValue first = plans.elements().front();
  const auto inputs = file.find("inputs");
  return inputs ? first.with("inputs", *inputs) : first;
}

JsonValue keys_of_plan(const JsonValue& file) {
  return is_of(file, "orrery.result/1") ? file.at("plan") : file;
}

std::optional<JsonValue> carried(const JsonValue& file, const std::string& kind,
                                 const std::string& name) {
  const auto inputs = file.find("inputs");
  const auto held = inputs ? inputs->find(kind) : std::nullopt;
  return held ? held->find(name) : std::nullopt;
}

std::vector<KeyOfPlanFile> keys_of_plan_file(const JsonValue& file) {
  static const std::map<std::string, std::string> kinds{{"model", "models"},
                                                        {"system", "systems"},
                                                        {"calibration", "calibrations"},
                                                        {"software", "software"},
                                                        {"schedule", "schedules"}};
  std::vector<KeyOfPlanFile> keys;
  const auto add = [&](const std::string& key, const JsonValue& value) {
    const auto kind = kinds.find(key);
    if (key == "model" && value.is_object())
      keys.push_back(
          {key, JsonValue::parse(json_quoted(parse_model(value).name), value.place().file), value});
    else
      keys.push_back(
          {key, value,
           kind == kinds.end() ? std::nullopt : carried(file, kind->second, value.text())});
  };
  for (const char* key : {"model", "system", "gpus", "calibration"})
    if (const auto value = file.find(key)) add(key, *value);
  const JsonValue plan = keys_of_plan(file);
  for (const std::string& key : plan.keys())
    if (const auto value = plan.find(key); value && !names_an_input(key)) add(key, *value);
  return keys;
}

void note_other_in_catalog(const std::string& key, const JsonValue& held) {
  if (key == "model") as_carried(parse_model(held), key, "workloads/models", read_model);
  if (key == "system") as_carried(parse_system(held), key, "topologies/systems", read_system);
  if (key == "software") as_carried(parse_software(held), key, "workloads/software", read_software);
}

Model model_of(const ScenarioOptions& options, const PlanFile& file) {
  const auto value = file && !options.model ? file->find("model") : std::nullopt;
  if (value && value->is_object()) return parse_model(*value);
  return input(options.model, file, "model", "workloads/models", read_model, parse_model);
}

System system_of(const ScenarioOptions& options, const PlanFile& file) {
  System system =
      input(options.system, file, "system", "topologies/systems", read_system, parse_system);
  const Place place = command_line / "calibration";
  const std::string path =
      options.calibration ? *options.calibration : from_plan_file(file, "calibration");
  const auto whole =
      options.calibration || path.empty() ? std::nullopt : carried(*file, "calibrations", path);
  if (whole)
    calibrate(system, *whole, path, place);
  else if (!path.empty())
    calibrate(system, path, place);
  return system;
}

namespace {

Scenario checked_scenario(const ScenarioOptions& options, const std::optional<Model>& other) {
  PlanRequest request;
  PlanFile file;
  int gpus = 0;
  if (options.plan) {
    file = read_plan_file(*options.plan);
    if (const auto count = file->find("gpus")) gpus = static_cast<int>(count->integer(1, 1 << 24));
    read_plan_of_file(request, *file);
  }
  for (const auto& [key, text] : options.keys) set_plan_flag(request, key, text);
  gpus = options.gpus.value_or(gpus);
  // A file's dp belongs to another plan if the user changes the number of replicas.
  const auto has = [&](const char* key) { return options.has_key(key); };
  if (gpus > 0 && !has("dp") && (options.gpus || has("tp") || has("pp") || has("cp")))
    request.dp.reset();

  const Model model = other && !options.model ? *other : model_of(options, file);
  const System system = system_of(options, file);
  if (file && !has("software"))
    if (const auto whole = carried(*file, "software", request.software)) {
      const Software software =
          as_carried(parse_software(*whole), "software", "workloads/software", read_software);
      return make_scenario(model, system, software, request, gpus, command_line);
    }
  return make_scenario(model, system, request, gpus, command_line);
}

}  // namespace

void note_doubt(const std::optional<std::string>& doubt) {
  static std::set<std::string> said;  // Several plans may be read.
  if (doubt && said.insert(*doubt).second) print_note(*doubt);
}

Scenario read_scenario(const ScenarioOptions& options, const std::optional<Model>& model) {
  Scenario scenario = checked_scenario(options, model);
  const Plan& plan = scenario.plan;
  note_doubt(unlikely_batch(plan.gbs, plan.seq, plan.gpus()));
  note_doubt(adapters_without_finetune(plan));
  note_doubt(unlikely_sequence(scenario.model, plan.seq));
  note_doubt(unfused_attention(scenario));
  note_doubt(unlikely_nic(scenario.system));
  note_doubt(unlikely_latency(scenario.system));
  return scenario;
}

}  // namespace orrery
