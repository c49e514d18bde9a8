#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "sim/search/plan_space.hpp"
#include "sim/search/search.hpp"
#include "sim/training/bill.hpp"

namespace orrery {

/// What a search stands on: built once, and shared by all workers, which are forked from there.
struct SearchGround {
  std::vector<PlanSpace> spaces;
  std::vector<int> system_of;                              ///< By space.
  std::vector<std::unique_ptr<EstimateContext>> contexts;  ///< By system.
  std::vector<std::optional<Economics>> economics;         ///< By system.

  /// Errors (bad_input): prices that the goal needs and that are not known.
  explicit SearchGround(const SearchRequest& request);

  bool has(const Candidate& candidate) const {
    return candidate.space < static_cast<std::int32_t>(spaces.size()) &&
           space(candidate).has(candidate.choice);
  }
  const PlanSpace& space(const Candidate& candidate) const {
    return spaces[static_cast<std::size_t>(candidate.space)];
  }
  Scenario scenario(const Candidate& candidate) const {
    return space(candidate).scenario(candidate.choice);
  }
  EstimateContext& context(int space) const {
    return *contexts[static_cast<std::size_t>(system_of[static_cast<std::size_t>(space)])];
  }
  const Economics* prices(int space) const {
    const auto& known =
        economics[static_cast<std::size_t>(system_of[static_cast<std::size_t>(space)])];
    return known ? &*known : nullptr;
  }
};

}  // namespace orrery
