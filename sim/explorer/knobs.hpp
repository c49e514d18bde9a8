#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/explorer/warm_inputs.hpp"
#include "sim/plan/plan_keys.hpp"

namespace orrery {

/// A value that a knob may be turned to, and what becomes of the plan.
struct KnobValue {
  std::string word;      ///< As a flag would say it; "": left open.
  std::string why_not;   ///< "": legal.
  StateChanges changes;  ///< What turning to it does to the state.
  /// Share of the fullest GPU's memory if all experts get equal rows; nothing where the plan is
  /// none.
  std::optional<double> memory;
};

/// One key that a page offers.
struct Knob {
  const PlanKey* key = nullptr;  ///< Null: `name` is none of a plan.
  std::string name;
  std::string help;
  std::string now;       ///< What the plan has; what the state says where it is none.
  bool said = false;     ///< By the state; else it follows.
  bool matters = true;   ///< Another value could change something.
  bool numbers = false;  ///< Values are whole numbers, rising.
  std::vector<KnobValue> values;
};

/// Knobs of all keys but those that are files, each with the values that plans usually have.
/// Legal is what make_scenario() takes with the changes of turning there; nothing else decides.
std::vector<Knob> knobs_of(const ExploredState& state, const StateInputs& inputs);

/// What flags such as "--vpp 4 --schedule interleaved" change, with what cannot stay beside them.
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
