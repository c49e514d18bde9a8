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
  std::map<std::string, std::string> keys;  ///< Of a plan.

  bool has_key(const std::string& key) const { return keys.contains(key); }
};
void add_scenario(Options& options, ScenarioOptions& into);

/// What a plan file holds: of a search (orrery.search/1) its first plan with what the search was
/// given, else the file as it is. `place`: of the word that names it.
JsonValue read_plan_file(const std::string& word, const Place& place);

/// The model that an option names, else the one that a plan file names or holds; and the system,
/// with the calibration of either.
Model model_of(const ScenarioOptions& options, const std::optional<JsonValue>& plan_file);
System system_of(const ScenarioOptions& options, const std::optional<JsonValue>& plan_file);
/// Where a plan file has the keys of its plan: a result apart from its figures, others at the top.
JsonValue keys_of_plan(const JsonValue& file);

/// What a result or search carries of `shelf` ("models", "systems", "software", "calibrations",
/// "schedules") under that name.
std::optional<JsonValue> carried(const JsonValue& file, const std::string& shelf,
                                 const std::string& name);

/// Reads what the options name. A flag wins over the plan file. `model`: used unless --model names
/// one.
Scenario read_scenario(const ScenarioOptions& options, const std::optional<Model>& model = {});

}  // namespace orrery
