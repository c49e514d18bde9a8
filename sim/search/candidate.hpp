#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/search/bound.hpp"
#include "sim/search/objective.hpp"
#include "sim/search/plan_space.hpp"
#include "sim/training/context.hpp"

namespace orrery {

/// A legal plan that fits, with what is known of it before it is simulated.
struct Candidate {
  PlanSpace::Choice choice{};
  std::int32_t space = 0;   ///< Of the search's spaces.
  std::int32_t number = 0;  ///< Of a search's own; below 0: of another shard.
  std::int32_t layout = 0;  ///< Equal for plans of one space that differ in settings alone.
  double bound_s = 0.0;     ///< No shorter step.
  double bound = 0.0;       ///< No lower score.
  double memory = 0.0;      ///< Of the fullest stage, as a share of the GPU's.
};

/// With the bound of its own routing's prices, where its routing is uneven: to be looked at before
/// a step that takes long to simulate.
Candidate sharpened(Candidate one, const Scenario& scenario, const Objective& objective,
                    const Economics* economics, KnownPassTimes& passes);

/// What became of one part of a space.
struct Part {
  std::vector<Candidate> fitting;
  std::int64_t legal = 0;
  double least_memory = 0.0;  ///< If plans were legal and none fits: bytes of the smallest.
  std::string smallest;       ///< Its flags.
  PlanRefusal refusal;
  bool whole = true;  ///< False where the time was over before all of it was looked at.
};

/// Legal plans of a part, those that fill more than `most_memory` of the GPU left out, with the
/// bounds of their scores. It goes on for `most_time`, and until the first that fits.
Part explore(const PlanSpace& space, int part, Shard shard, double most_memory,
             const Objective& objective, const Economics* economics, EstimateContext& context,
             std::optional<Seconds> most_time = {});

/// For the way from a worker to its parent.
std::string packed(const Part& part);
Part unpacked(const std::string& bytes);

}  // namespace orrery
