#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "sim/explorer/state_parameters.hpp"
#include "sim/training/estimate.hpp"

namespace orrery {

/// The reason why a plan has no time, and ways out.
struct PlanRefused {
  std::string message;
  std::vector<Remedy> remedies;
  std::optional<MemoryReport> memory;  ///< Present if the plan lacks memory.
};

nlohmann::ordered_json state_json(const ExploredState& state);
nlohmann::ordered_json changes_json(const StateChanges& changes);
nlohmann::ordered_json parameters_json(const std::vector<StateParameter>& parameters);
nlohmann::ordered_json refusal_json(const PlanRefused& refused);

/// Names and titles of models, systems and software, and what pages say about them.
nlohmann::ordered_json catalog_json(WarmInputs& inputs);

}  // namespace orrery
