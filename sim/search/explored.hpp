#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "sim/core/progress.hpp"
#include "sim/core/worker_pool.hpp"
#include "sim/search/candidate.hpp"
#include "sim/search/search.hpp"

namespace orrery {

/// Tells layouts apart.
class LayoutNumbers {
 public:
  explicit LayoutNumbers(const SearchGround& ground) : ground_{ground} {}

  std::int32_t of(const Candidate& candidate);

 private:
  const SearchGround& ground_;
  std::map<std::pair<std::int32_t, PlanSpace::Choice>, std::int32_t> numbers_;
};

/// The plans of a search, or of one of its shards, with their bounds.
struct Explored {
  std::vector<Candidate> candidates;  ///< In the order of enumeration.
  Part sum;                           ///< Counts and reasons of all parts.
  std::vector<int> parts_cut_short;
  LayoutNumbers layouts;  ///< Of candidates.
};

/// Of all spaces.
int parts_of(const SearchGround& ground);

/// Every part; with a budget at first for a short time, and what that cut short again for longer,
/// as often as half of it allows: whatever time there is goes to all tp x pp alike.
Explored explore_all(const SearchRequest& request, const SearchGround& ground,
                     const Objective& objective, Shard shard, const Stopwatch& stopwatch,
                     SearchProgress& progress,
                     const std::function<void(const SearchProgress&)>& watch);

/// Errors: a worker of the search failed, `what` names the task.
void fail_if_it_failed(const Outcome& outcome, const std::string& what);

}  // namespace orrery
