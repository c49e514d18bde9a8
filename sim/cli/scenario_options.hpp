#pragma once

#include <optional>

#include "sim/cli/options.hpp"
#include "sim/plan/scenario.hpp"
#include "sim/training/estimate.hpp"

namespace orrery {

/// --ignore-memory, for a command that times the plan that it is given.
void add_memory_option(Options& options, Detail& into);
/// --host-memory of a command that may simulate much; half of this machine's where it is left out.
void add_host_memory_option(Options& options, Bytes& into);
/// --simulator, which chooses the simulator of this process (SimulatorChoice).
void add_simulator(Options& options);

/// --model, --system, --calibration, --gpus, --plan and the keys of a plan, as typed.
struct ScenarioOptions {
  std::optional<std::string> model, system, calibration, plan;
  std::optional<int> gpus;
  std::map<std::string, std::string> keys;  ///< Keys of a plan.

  bool has_key(const std::string& key) const { return keys.contains(key); }
};
void add_scenario(Options& options, ScenarioOptions& into);

/// The plan in a file: the first one of a search (orrery.search/1) with the search's inputs, else
/// the file unchanged.
JsonValue read_plan_file(const std::string& path);

/// The model that an option names, else the one that a plan file names or holds; and the system,
/// with the calibration of either.
Model model_of(const ScenarioOptions& options, const std::optional<JsonValue>& plan_file);
System system_of(const ScenarioOptions& options, const std::optional<JsonValue>& plan_file);
/// The keys of a plan file's plan: a result has them apart from its figures, others at the top.
JsonValue keys_of_plan(const JsonValue& file);

/// The entry of that name that a result or search carries of `kind` ("models", "systems",
/// "software", "calibrations", "schedules").
std::optional<JsonValue> carried(const JsonValue& file, const std::string& kind,
                                 const std::string& name);

/// A key that a plan file gives, an input's or the plan's: `held` is the input that its value
/// names, where the file holds that itself.
struct KeyOfPlanFile {
  std::string name;
  JsonValue value;
  std::optional<JsonValue> held;
};
std::vector<KeyOfPlanFile> keys_of_plan_file(const JsonValue& file);
/// Says so on stderr if the catalog's model, system or software (`key`) of that name differs from
/// one that a plan file holds.
void note_other_in_catalog(const std::string& key, const JsonValue& held);

/// Says an input that nobody means (unlikely_inputs.hpp), once, on stderr.
void note_doubt(const std::optional<std::string>& doubt);

/// Reads what the options name, and says what of it nobody means. A flag wins over the plan file.
/// `model`: used unless --model names one.
Scenario read_scenario(const ScenarioOptions& options, const std::optional<Model>& model = {});

}  // namespace orrery
