#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/search/bound.hpp"
#include "sim/search/candidate.hpp"

namespace orrery {

/// The best plan of some spaces, and what finding it took.
struct BestPlan {
  Candidate candidate;  ///< Its space is a place in the list of spaces.
  Seconds time;         ///< Of a step.
  double score = 0.0;
};

struct BestPlanSearch {
  std::optional<BestPlan> best;  ///< Nothing: no plan divides, or none fits.
  std::int64_t groups = 0;       ///< Of plans that divide (PlanSpace::visit_groups).
  std::int64_t uneven = 0;       ///< More groups, which were left out as `leave_uneven` says.
  std::int64_t opened = 0;       ///< Groups whose plans were looked at one by one.
  std::int64_t simulated = 0;
  double least_memory = 0.0;  ///< If plans divide and none fits: bytes of the smallest.
  std::string smallest;       ///< Its flags.
  PlanRefusal refusal;        ///< If none divides: why.
};

/// The plan that search() would list first, without counting all the others: plans are looked at in
/// groups that differ in ZeRO and the overlap of gradients alone, in the order of a bound that
/// holds for all of a group. A group is opened only when no plan that is known beats its bound, and
/// of its plans those are simulated that no known one beats. So most plans are never enumerated,
/// and all that are passed over are proven to be worse.
class BestPlanFinder {
 public:
  /// `spaces`: of one model, system and number of GPUs. `leave_uneven`: leaves out plans some of
  /// whose groups straddle NVLink domains and others not, as with tp 16 in domains of 72. Their
  /// bound knows of kernels alone, and they take long to simulate.
  BestPlanFinder(std::vector<const PlanSpace*> spaces, const Objective& objective,
                 const Economics* economics, EstimateContext& context, KnownPassTimes& passes,
                 bool leave_uneven = false);

  /// With plans that fill up to `most_memory` of the GPU's; infinite: the best one if memory did
  /// not matter.
  BestPlanSearch find(double most_memory);

 private:
  struct Group {
    PlanSpace::Choice choice;
    std::int32_t space = 0;
    double bound_s = 0.0, bound = 0.0;  ///< As a Candidate's, of all its plans.
  };

  Candidate candidate_of(std::int32_t space, const PlanSpace::Choice& choice,
                         const Scenario& scenario) const;

  std::vector<const PlanSpace*> spaces_;
  const Objective& objective_;
  const Economics* economics_;
  EstimateContext& context_;
  KnownPassTimes& passes_;
  std::vector<Group> groups_;  ///< In the order of their bounds.
  std::int64_t uneven_ = 0;
  PlanRefusal refusal_;
};

}  // namespace orrery
