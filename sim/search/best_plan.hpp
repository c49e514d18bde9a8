#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/search/candidate.hpp"

namespace orrery {

/// The best plan of some spaces, and what finding it took.
struct BestPlanSearch {
  std::optional<Candidate> best;  ///< Nothing: no plan divides, or none fits.
  std::int64_t groups = 0;        ///< Groups of plans that divide (PlanSpace::visit_groups).
  std::int64_t uneven = 0;        ///< More groups, which were left out as `least_even` says.
  std::int64_t opened = 0;        ///< Groups whose plans were looked at one by one.
  std::int64_t simulated = 0;
  NoPlan none;
};

/// The plan that search() would list first, without counting all the others: plans are looked at in
/// groups that differ in ZeRO and the overlap of gradients alone, in the order of a bound that
/// holds for all of a group. A group is opened only when no plan that is known beats its bound, and
/// of its plans those are simulated that no known one beats. So most plans are never enumerated,
/// and all that are passed over are proven to be worse.
class BestPlanFinder {
 public:
  /// `spaces`: of one model, system and number of GPUs. Leaves out plans that lie less evenly than
  /// `least_even`, as with tp 16 in domains of 72.
  BestPlanFinder(std::vector<const PlanSpace*> spaces, const PlanScorer& scorer,
                 Evenness least_even = Evenness::none);

  /// Looks at plans that fill up to `most_memory` of the GPU's; infinite: the best one if memory
  /// did not matter. What one call simulates the next one knows.
  BestPlanSearch find(double most_memory);

 private:
  std::vector<const PlanSpace*> spaces_;
  PlanScorer scorer_;
  std::vector<Candidate> groups_;  ///< Sorted by their bounds.
  std::int64_t uneven_ = 0;
  PlanRefusal refusal_;
  /// Plans simulated, by space and choice: their step times and scores.
  std::map<std::pair<std::int32_t, PlanSpace::Choice>, Candidate> simulated_;
};

}  // namespace orrery
