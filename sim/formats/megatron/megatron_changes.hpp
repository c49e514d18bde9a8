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
  std::string name;  ///< Name in arguments.py: "num_layers".
  std::string before, after;

  bool operator==(const ArgumentChange&) const = default;
};

/// The changes that turn a script that runs the plan of `before` into one that runs that of
/// `after`: arguments that differ and that the script lacks. The model and the precision in which
/// gradients are reduced stay as they are.
std::vector<ArgumentChange> changed_arguments(const MegatronArguments& script,
                                              const MegatronFlags& before,
                                              const MegatronFlags& after);

/// All of the script's arguments with the changes, one flag a line; new ones come last.
std::string changed_script_text(const MegatronArguments& script,
                                const std::vector<ArgumentChange>& changes);

/// The changes of a script for the last of the plans, step by step: the keys of the plan that are
/// the reason, the time of a step and how much shorter that is, and the arguments.
std::string megatron_changes_text(const MegatronArguments& script,
                                  const std::vector<PlanStep>& steps);

}  // namespace orrery
