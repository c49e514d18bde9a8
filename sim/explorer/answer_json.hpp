#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "sim/explorer/knobs.hpp"
#include "sim/training/estimate.hpp"

namespace orrery {

/// Why a plan has no time, and what would have one.
struct PlanRefused {
  std::string message;
  std::vector<Remedy> remedies;
  std::optional<MemoryReport> memory;  ///< Where that is what it lacks.
};

nlohmann::ordered_json state_json(const ExploredState& state);
nlohmann::ordered_json changes_json(const StateChanges& changes);
nlohmann::ordered_json knobs_json(const std::vector<Knob>& knobs);
nlohmann::ordered_json refusal_json(const PlanRefused& refused);

/// Names and titles of models, systems and software, and what pages say beside them.
nlohmann::ordered_json catalog_json(WarmInputs& inputs);

}  // namespace orrery
