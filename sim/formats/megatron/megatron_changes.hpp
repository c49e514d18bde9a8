#pragma once

#include <string>
#include <vector>

#include "sim/formats/megatron/megatron_arguments.hpp"
#include "sim/formats/megatron/megatron_flags.hpp"
#include "sim/search/plan_space.hpp"

namespace orrery {

/// An argument that a script must change, as a shell takes it. "": the script has none, or shall
/// have none.
struct ArgumentChange {
  std::string name;  ///< In arguments.py: "num_layers".
  std::string before, after;

  bool operator==(const ArgumentChange&) const = default;
};

/// What must change in a script that runs the plan of `before` so that it runs that of `after`:
/// where the two differ, and the script does not have it already. What a run computes stays as it
/// is: its model, and in which precision it reduces gradients.
std::vector<ArgumentChange> changed_arguments(const MegatronArguments& script,
                                              const MegatronFlags& before,
                                              const MegatronFlags& after);

/// All of the script's arguments with the changes, one flag a line; what is new stands behind.
std::string changed_script_text(const MegatronArguments& script,
                                const std::vector<ArgumentChange>& changes);

/// What a script must change for the last of the plans, step by step: the keys of the plan that are
/// the reason, how long a step takes then and how much shorter that is, and the arguments.
std::string megatron_changes_text(const MegatronArguments& script,
                                  const std::vector<PlanStep>& steps);

}  // namespace orrery
