#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/training/estimate.hpp"
#include "tests/properties/plan_case.hpp"

namespace orrery {

/// A property of every plan. `broken` describes the violation, or returns nothing; nothing as well
/// if the property does not apply to this plan.
struct Property {
  const char* name;
  std::optional<std::string> (*broken)(const PlanCase& plan, const Estimate& answer);
};

const std::vector<Property>& plan_properties();

/// The answer, of a context that all plans of a system share; nothing for a plan that does not fit,
/// or whose step has more than some 5,000 tasks. `with_remedy`: the remedies for a plan that does
/// not fit are computed as well, as users get them; that takes longer than an answer.
std::optional<Estimate> answer_of(const Scenario& scenario, bool with_remedy);

}  // namespace orrery
