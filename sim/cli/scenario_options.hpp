#pragma once

#include <optional>

#include "sim/cli/options.hpp"
#include "sim/core/units.hpp"
#include "sim/engine/simulation.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {

/// --ignore-memory, to be added to the options of a command that times the plan that it is given.
boost::program_options::options_description memory_option();
/// Detail::most_memory for such a command.
double memory_limit_of(const ParsedOptions& parsed);

/// --host-memory of a command that may simulate much.
boost::program_options::options_description host_memory_option();
/// What a simulation may take of this machine's memory; half of it where nothing is said.
Bytes host_memory_of(const ParsedOptions& parsed);

/// --simulator, for a command that simulates.
boost::program_options::options_description simulator_option();
/// The same with its older name, --engine, which names a serving engine in other commands.
boost::program_options::options_description simulator_option_and_alias();
/// The chosen simulator; Simulator::own where none is given. Errors: another word.
Simulator simulator_of(const ParsedOptions& parsed);
/// The same of a command with the alias, too.
Simulator simulator_or_alias_of(const ParsedOptions& parsed);

/// --model, --system, --gpus, --plan and one option for every key of a plan.
boost::program_options::options_description scenario_options();
/// Those of them whose value may be left out.
std::vector<std::string> scenario_booleans();

/// What a plan file holds: of a search (orrery.search/1) its first plan with what the search was
/// given, else the file as it is. `place`: of the word that names it.
JsonValue read_plan_file(const std::string& word, const Place& place);

/// The model that an option names, else the one that a plan file names or holds; and the system,
/// with the calibration of either.
Model model_of(const ParsedOptions& options, const std::optional<JsonValue>& plan_file);
System system_of(const ParsedOptions& options, const std::optional<JsonValue>& plan_file);
/// Where a plan file has the keys of its plan: a result apart from its figures, others at the top.
JsonValue keys_of_plan(const JsonValue& file);

/// What a result or search carries of `shelf` ("models", "systems", "software", "calibrations",
/// "schedules") under that name.
std::optional<JsonValue> carried(const JsonValue& file, const std::string& shelf,
                                 const std::string& name);

/// Reads what the options name. A flag wins over the plan file. `model`: used unless --model names
/// one.
Scenario read_scenario(const ParsedOptions& options, const std::optional<Model>& model = {});

}  // namespace orrery
