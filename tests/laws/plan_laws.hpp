#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/estimate/estimate.hpp"
#include "tests/laws/plan_case.hpp"

namespace orrery {

/// What must hold of every plan. `broken` says how it does not, or nothing; nothing as well where
/// the law says nothing of this plan.
struct PlanLaw {
  const char* name;
  std::optional<std::string> (*broken)(const PlanCase& plan, const Estimate& answer);
};

const std::vector<PlanLaw>& plan_laws();

/// The answer, of a context that all plans of a system share.
Estimate answer_of(const Scenario& scenario);

}  // namespace orrery
