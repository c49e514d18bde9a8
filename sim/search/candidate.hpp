#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/best_candidates.hpp"
#include "sim/search/bound.hpp"
#include "sim/search/objective.hpp"
#include "sim/search/plan_space.hpp"
#include "sim/training/context.hpp"

namespace orrery {

/// A legal plan that fits. Until it is simulated, its score and its step time are lower bounds. Of
/// equal scores the faster plan is the better one, of those the smaller, and of those the one that
/// is enumerated first; scores that differ in the twelfth digit alone are equal.
struct Candidate {
  PlanSpace::Choice choice{};
  std::int32_t space = 0;   ///< Place among the search's spaces.
  std::int32_t number = 0;  ///< Place in the search's enumeration; below 0: of another shard.
  std::int32_t layout = 0;  ///< Equal for plans of one space that differ in settings alone.
  double score = 0.0;
  double step_s = 0.0;
  double memory = 0.0;  ///< The fullest stage's, as a share of the GPU's.

  std::string name() const { return "plan " + std::to_string(number); }
  double second_objective() const { return memory; }
  bool scores_below(const Candidate& other) const;
  bool ranks_before(const Candidate& other) const;
  /// The order in which plans are looked at: by exact bounds, then as they are enumerated.
  bool bound_before(const Candidate& other) const;
};

/// The inputs that plans on one system are scored with.
struct PlanScorer {
  const Objective& objective;
  const Economics* economics;  ///< The system's GPU's; null if the objective needs none.
  EstimateContext& context;    ///< The system's.
  KnownPassTimes& passes;      ///< The context's.

  /// The plan with lower bounds of its step time and score; its memory is left open.
  Candidate bounded(const PlanSpace::Choice& choice, const Scenario& scenario) const;
  /// The plan simulated. Nothing where its routing is uneven and the prices of that routing prove
  /// that it cannot be among the best of `known`: they take a tenth of a simulation's time.
  std::optional<Candidate> simulated(Candidate one, const Scenario& scenario,
                                     const BestCandidates<Candidate>& known) const;
};

/// Why a search has no plan: none divides, or none of those that divide fits.
struct NoPlan {
  PlanRefusal refusal;
  double least_memory = 0.0;  ///< Bytes of the smallest plan, if plans divide and none fits.
  std::string smallest;       ///< Its flags; "" where none divides.

  void take(const NoPlan& other);
  /// Why none divides: a sentence. A refusal of the model holds for every plan.
  std::string why_none_divides() const;
  /// The share of the GPU's memory that the plan's fullest stage takes. Nothing where it is more
  /// than `most`: the plan may then be the smallest. Where tokens go is found out only if the plan
  /// would fit with its routing being even, or be the smallest.
  std::optional<double> memory_if_it_fits(const Scenario& scenario, double most,
                                          EstimateContext& context,
                                          const std::function<std::string()>& flags);
};

/// The result of enumerating one part of a space.
struct Part {
  std::vector<Candidate> fitting;
  std::int64_t legal = 0;
  NoPlan none;
  bool whole = true;  ///< False where the time was over before all of it was looked at.
};

/// Legal plans of a part, those that fill more than `most_memory` of the GPU left out, with the
/// bounds of their scores. It goes on for `most_time`, and until the first that fits.
Part explore(const PlanSpace& space, int part, Shard shard, double most_memory,
             const PlanScorer& scorer, std::optional<Seconds> most_time = {});

/// The bytes that a worker sends to its parent.
std::string packed(const Part& part);
Part unpacked(const std::string& bytes);

}  // namespace orrery
