#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "sim/core/progress.hpp"
#include "sim/search/candidate.hpp"
#include "sim/search/search.hpp"

namespace orrery {

/// Tells layouts apart.
class LayoutNumbers {
 public:
  explicit LayoutNumbers(const SearchContext& context) : context_{context} {}

  std::int32_t of(const Candidate& candidate);

 private:
  const SearchContext& context_;
  std::map<std::pair<std::int32_t, PlanSpace::Choice>, std::int32_t> numbers_;
};

/// The plans of a search, or of one of its shards, with their bounds.
struct Explored {
  std::vector<Candidate> candidates;  ///< They are in the order of enumeration.
  std::int64_t legal = 0;
  NoPlan none;
  std::vector<int> parts_cut_short;
  LayoutNumbers layouts;  ///< Those of the candidates.
};

/// The number of parts of all spaces.
int parts_of(const SearchContext& context);

/// Enumerates every part. With a budget each part gets a short time first, and parts that were cut
/// short get longer ones, as often as half of the budget allows: all tp x pp share it alike.
Explored explore_all(const SearchRequest& request, const SearchContext& context,
                     const Objective& objective, Shard shard, const Stopwatch& stopwatch,
                     SearchProgress& progress,
                     const std::function<void(const SearchProgress&)>& watch);

}  // namespace orrery
