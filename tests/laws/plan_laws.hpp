#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/training/estimate.hpp"
#include "tests/laws/plan_case.hpp"

namespace orrery {

/// What must hold of every plan. `broken` says how it does not, or nothing; nothing as well where
/// the law says nothing of this plan.
struct PlanLaw {
  const char* name;
  std::optional<std::string> (*broken)(const PlanCase& plan, const Estimate& answer);
};

const std::vector<PlanLaw>& plan_laws();

/// The answer, of a context that all plans of a system share; nothing for a plan that does not fit,
/// or whose step has more than some 5,000 tasks. `with_remedy`: a plan that does not fit is told
/// what would, as users are; that takes longer than an answer.
std::optional<Estimate> answer_of(const Scenario& scenario, bool with_remedy);

}  // namespace orrery
