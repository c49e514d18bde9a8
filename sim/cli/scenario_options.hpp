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
/// The same with its older name, --engine, which names a serving engine in other commands.
void add_simulator_and_alias(Options& options);

/// --model, --system, --calibration, --gpus, --plan and the keys of a plan, as typed.
struct ScenarioOptions {
  std::optional<std::string> model, system, calibration, plan;
  std::optional<int> gpus;
  std::map<std::string, std::string> keys;  ///< Keys of a plan.

  bool has_key(const std::string& key) const { return keys.contains(key); }
};
void add_scenario(Options& options, ScenarioOptions& into);

/// The plan in a file: the first one of a search (orrery.search/1) with the search's inputs, else
/// the file unchanged. `place`: of the word that names it.
JsonValue read_plan_file(const std::string& word, const Place& place);

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

/// Reads what the options name. A flag wins over the plan file. `model`: used unless --model names
/// one.
Scenario read_scenario(const ScenarioOptions& options, const std::optional<Model>& model = {});

}  // namespace orrery
