#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/explorer/warm_inputs.hpp"
#include "sim/plan/plan_keys.hpp"

namespace orrery {

/// A possible value of a parameter, and its effect on the plan.
struct ParameterValue {
  std::string word;      ///< The word of a flag; "": left open.
  std::string why_not;   ///< "": legal.
  StateChanges changes;  ///< Changes of the state that it brings.
  /// Share of the fullest GPU's memory if all experts get equal rows; nothing without a legal plan.
  std::optional<double> memory;
};

/// One key that a page offers.
struct StateParameter {
  const PlanKey* key = nullptr;  ///< Null: no plan has `name`.
  std::string name;
  std::string help;
  std::string now;       ///< The plan's value, or the state's word for keys that no plan has.
  bool is_set = false;   ///< The state sets it; else it follows.
  bool matters = true;   ///< Another value could change something.
  bool numbers = false;  ///< Values are whole numbers, rising.
  std::vector<ParameterValue> values;
};

/// Parameters of all keys except files, each with the values that plans usually have. A value is
/// legal if make_scenario() accepts it with its changes; nothing else decides.
std::vector<StateParameter> state_parameters(const ExploredState& state, const StateInputs& inputs);

/// Changes by flags such as "--vpp 4 --schedule interleaved", conflicting keys included.
StateChanges changes_of(const std::string& flags, const ExploredState& state);

/// Ways out of a refusal that its words name ("use --recompute full", "use gbs=1536 or gbs=2048"),
/// those that lead to a legal plan.
struct Remedy {
  std::string words;  ///< "--recompute full"
  StateChanges changes;
  bool runs = false;  ///< It also fits in the memory.
};
std::vector<Remedy> remedies_in(const std::string& words, const ExploredState& state,
                                const StateInputs& inputs);

}  // namespace orrery
