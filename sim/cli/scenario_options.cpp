#include "sim/cli/scenario_options.hpp"

#include <unistd.h>

#include <algorithm>
#include <boost/program_options/value_semantic.hpp>
#include <iostream>
#include <limits>

#include "sim/core/catalog.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/value_list.hpp"
#include "sim/layers/memory.hpp"
#include "sim/measurements/calibration.hpp"
#include "sim/pipeline/schedule_file.hpp"
#include "sim/plan/plan_keys.hpp"

namespace po = boost::program_options;

namespace orrery {

boost::program_options::options_description memory_option() {
  boost::program_options::options_description options{"What may not fit", 100};
  options.add_options()("ignore-memory",
                        "time a plan also where it cannot fit in the GPUs' memory; marked so");
  return options;
}

double memory_limit_of(const ParsedOptions& parsed) {
  return parsed.has("ignore-memory") ? std::numeric_limits<double>::infinity()
                                     : tolerated_share_of_memory;
}

boost::program_options::options_description host_memory_option() {
  boost::program_options::options_description options{"What this machine has to hold", 100};
  options.add_options()(
      "host-memory", boost::program_options::value<std::string>()->value_name("BYTES"),
      "what the simulation may take of this machine's memory (default: half, at most "
      "6 GB, some 20 million tasks)");
  return options;
}

Bytes host_memory_of(const ParsedOptions& parsed) {
  if (parsed.has("host-memory"))
    return parse_bytes(parsed.text("host-memory"), {"--host-memory", ""});
  // What fits in 6 GB takes a minute at the most: a plan that asks for more by mistake is told.
  constexpr Bytes most{6e9};
  return std::min(most, Bytes{0.5 * static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
                              static_cast<double>(::sysconf(_SC_PAGESIZE))});
}

po::options_description simulator_option() {
  po::options_description options{"Simulation engine", 100};
  options.add_options()(
      "simulator", po::value<std::string>()->value_name("own|simgrid"),
      "network model that simulates how flows share links: Orrery's own (default), or SimGrid's, "
      "which is slower and gives the same answer");
  return options;
}

po::options_description simulator_option_and_alias() {
  po::options_description options = simulator_option();
  options.add_options()("engine", po::value<std::string>()->value_name("own|simgrid"),
                        "the same as --simulator");
  return options;
}

namespace {

Simulator simulator_named_by(const ParsedOptions& parsed, const std::string& option) {
  if (!parsed.has(option)) return Simulator::own;
  const std::string word = parsed.text(option);
  const auto& names = simulator_names();
  const auto found = std::find(names.begin(), names.end(), word);
  if (found == names.end())
    fail_input({"", "--" + option}, "'" + word + "' is not a simulator", suggestion(word, names));
  return static_cast<Simulator>(found - names.begin());
}

}  // namespace

Simulator simulator_of(const ParsedOptions& parsed) {
  return simulator_named_by(parsed, "simulator");
}

Simulator simulator_or_alias_of(const ParsedOptions& parsed) {
  return simulator_named_by(parsed, parsed.has("simulator") ? "simulator" : "engine");
}

namespace {

bool is_of(const JsonValue& json, const std::string& schema) {
  const auto found = json.find("schema");
  return found && found->text() == schema;
}

using PlanFile = std::optional<JsonValue>;

// What is simulated and not how it is spread, as a plan file may hold it, and what an imported run
// was written and measured as, or is where it does not only repeat one step.
bool names_an_input(const std::string& key) {
  static const std::vector<std::string> keys{"model",  "system",    "calibration", "gpus",
                                             "inputs", "arguments", "measured",    "ramp"};
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

std::string from_plan_file(const PlanFile& file, const std::string& key) {
  const auto value = file ? file->find(key) : std::nullopt;
  return value ? value->text() : "";
}

// A file stands alone, so that it means the same tomorrow; who has changed the catalog since may
// expect otherwise.
template <class Thing>
Thing as_carried(Thing thing, const std::string& option, const std::string& shelf,
                 Thing (*read)(const std::string&, const Place&)) {
  const std::vector<std::string> known = list_catalog(shelf);
  const bool has_it = std::find(known.begin(), known.end(), thing.name) != known.end();
  if (has_it && read(thing.name, {}).document != thing.document)
    std::cerr << "orrery: note: the " << option << " '" << thing.name
              << "' is taken as the plan file holds it; that of the catalog differs (--" << option
              << " " << thing.name << " takes it)\n";
  return thing;
}

// The word of an option or else of the file, which may hold the thing itself.
template <class Thing>
Thing input(const ParsedOptions& options, const PlanFile& file, const std::string& option,
            const std::string& shelf, Thing (*read)(const std::string&, const Place&),
            Thing (*parse)(const JsonValue&)) {
  const Place place{"--" + option, ""};
  if (options.has(option) || from_plan_file(file, option).empty())
    return read(required(options, option, "name one: orrery list " + option + "s"), place);
  const std::string word = from_plan_file(file, option);
  if (const auto whole = carried(*file, option + "s", word))
    return as_carried(parse(*whole), option, shelf, read);
  return read(word, place);
}

// What a file says of dp is then of another plan.
bool changes_replicas(const ParsedOptions& options) {
  return options.has("gpus") || options.has("tp") || options.has("pp") || options.has("cp");
}

void read_plan_of_file(PlanRequest& request, const JsonValue& file) {
  const JsonValue plan = keys_of_plan(file);
  for (const std::string& key : plan.keys()) {
    const auto value = plan.find(key);
    if (!value || names_an_input(key)) continue;
    const auto text = key == "schedule" ? carried(file, "schedules", value->text()) : std::nullopt;
    if (text)
      request.schedule = &user_schedule(value->text(), text->text());
    else
      set_plan_key(request, key, *value);
  }
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
    if (key.access.form == Form::truth) names.push_back(key.name);
  return names;
}

JsonValue read_plan_file(const std::string& word, const Place& place) {
  JsonValue file = JsonValue::read_file(find_in_catalog("workloads/plans", word, place));
  if (!is_of(file, "orrery.search/1")) return file;
  const JsonValue plans = file.at("plans");
  if (plans.elements().empty()) plans.fail("is empty", "search with a larger --budget");
  const JsonValue first = plans.elements().front();
  const auto inputs = file.find("inputs");
  return inputs ? first.with("inputs", *inputs) : first;
}

JsonValue keys_of_plan(const JsonValue& file) {
  return is_of(file, "orrery.result/1") ? file.at("plan") : file;
}

std::optional<JsonValue> carried(const JsonValue& file, const std::string& shelf,
                                 const std::string& name) {
  const auto inputs = file.find("inputs");
  const auto held = inputs ? inputs->find(shelf) : std::nullopt;
  return held ? held->find(name) : std::nullopt;
}

Model model_of(const ParsedOptions& options, const PlanFile& file) {
  const auto value = file && !options.has("model") ? file->find("model") : std::nullopt;
  if (value && value->is_object()) return parse_model(*value);
  return input(options, file, "model", "workloads/models", read_model, parse_model);
}

System system_of(const ParsedOptions& options, const PlanFile& file) {
  System system = input(options, file, "system", "topologies/systems", read_system, parse_system);
  const Place place{"--calibration", ""};
  const bool asked = options.has("calibration");
  const std::string path =
      asked ? options.text("calibration") : from_plan_file(file, "calibration");
  const auto whole = asked || path.empty() ? std::nullopt : carried(*file, "calibrations", path);
  if (whole)
    calibrate(system, *whole, path, place);
  else if (!path.empty())
    calibrate(system, path, place);
  return system;
}

Scenario read_scenario(const ParsedOptions& options, const std::optional<Model>& other) {
  PlanRequest request;
  PlanFile file;
  int gpus = 0;
  if (options.has("plan")) {
    file = read_plan_file(options.text("plan"), command_line / "plan");
    if (const auto count = file->find("gpus")) gpus = static_cast<int>(count->integer(1, 1 << 24));
    read_plan_of_file(request, *file);
  }
  for (const PlanKey& key : plan_keys())
    if (options.has(key.name)) set_plan_flag(request, key.name, options.text(key.name));
  if (options.has("gpus"))
    gpus = static_cast<int>(value_of_flag("gpus", options.text("gpus")).integer(1, 1 << 24));
  if (gpus > 0 && !options.has("dp") && changes_replicas(options)) request.dp.reset();

  const Model model = other && !options.has("model") ? *other : model_of(options, file);
  const System system = system_of(options, file);
  if (file && !options.has("software"))
    if (const auto whole = carried(*file, "software", request.software)) {
      const Software software =
          as_carried(parse_software(*whole), "software", "workloads/software", read_software);
      return make_scenario(model, system, software, request, gpus, command_line);
    }
  return make_scenario(model, system, request, gpus, command_line);
}

}  // namespace orrery
