#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/layers/memory.hpp"
#include "sim/search/objective.hpp"
#include "sim/search/plan_space.hpp"
#include "sim/search/search_share.hpp"
#include "sim/training/bill.hpp"
#include "sim/training/estimate.hpp"

namespace orrery {

struct SearchRequest {
  Model model;
  std::vector<System> systems;
  std::vector<int> gpus;
  std::vector<std::int64_t> gbs;
  std::vector<Fixed> fixed;
  Goal goal = Goal::step_time;
  std::optional<Deadline> deadline;
  std::optional<AssumedFailures> failures;   ///< Needed by goodput.
  std::optional<double> tokens;              ///< The answer says what training on them takes.
  std::string economics;                     ///< A file over the catalog's prices; "" for none.
  double max_memory = safe_share_of_memory;  ///< Share of the GPU's that a plan may fill.
  BestList list;  ///< Layouts as PlanDimension::of_layout says; a front is of score and memory.
  int workers = 1;
  /// Wall clock, of which about half goes into enumerating, which goes on until a plan fits; then
  /// the search stops unproven. What is listed is simulated once more for its figures.
  std::optional<Seconds> budget;
};

/// A plan with its place in the ranking.
struct Found {
  Result result;
  double score = 0.0;
  bool tie = false;   ///< No significant difference from the best (ties.hpp).
  std::string flags;  ///< Options of `orrery estimate`.
};

struct SearchResult {
  std::vector<Found> plans;  ///< Best first; of a Pareto front the fastest first.
  std::int64_t legal = 0;
  std::int64_t fits = 0;  ///< = simulated + bounded_out + what the budget left.
  std::int64_t simulated = 0;
  std::int64_t bounded_out = 0;  ///< Their bounds prove that they cannot be in the list.
  bool interrupted = false;      ///< Ctrl-C ended the search, as a budget would.
  bool optimal = true;           ///< False where the budget ended the search.
  double best_unexplored = 0.0;  ///< Set if not optimal: no known plan that is left is below it.
  /// Combinations of tp and pp whose plans the budget did not let be enumerated in full.
  int parts_cut_short = 0;
  int parts = 0;
};

/// A plan that a search has simulated, before the list is final.
struct SimulatedPlan {
  std::int32_t number = 0;  ///< No other plan of the search has it.
  int gpus = 0;
  std::int64_t gbs = 0;
  std::string flags;  ///< Those of Found.
  Seconds step;
  double tokens_per_s_per_gpu = 0.0;
  double memory = 0.0;  ///< The fullest stage's, as a share of the GPU's.
};

/// The progress of a search.
struct SearchProgress {
  int parts = 0;  ///< All parts of all spaces; parts_done are enumerated.
  int parts_done = 0;
  std::int64_t legal = 0;
  std::int64_t fits = 0;
  std::int64_t simulated = 0;
  std::optional<double> best;         ///< Lowest score so far.
  std::optional<double> bound;        ///< No plan that is left scores below this.
  std::optional<SimulatedPlan> plan;  ///< The one that was simulated last.
  std::vector<std::int32_t> leading;  ///< Numbers of the best so far, best first.
};

/// The best plans of all that divide and fit: what simulating every one of them would find. In the
/// order of their bounds they are simulated until no other can enter the list. Of plans that score
/// the same to a nanosecond of step time the one with the least memory is first, then in the order
/// of enumeration, so that the answer does not depend on `workers`. Errors (infeasible): no plan
/// divides, fits, or meets the deadline: which constraint leaves none. `watch` hears of every step.
/// Ctrl-C ends the search with what it has found so far while an Interruption lives.
SearchResult search(const SearchRequest& request,
                    const std::function<void(const SearchProgress&)>& watch = {});

/// The same of a shard's plans alone; that there are none is no error. Plans that others are known
/// to beat, by `talk`, are not simulated.
SearchShare search_share(const SearchRequest& request, Shard shard, ShardExchange& exchange,
                         const std::function<void(const SearchProgress&)>& watch = {});
/// Puts the results of all shards together: the list that search() finds, and counts added up.
SearchResult put_together(const SearchRequest& request, const std::vector<SearchShare>& shares);

/// Inputs of a search: built once, and shared by all workers, which are forked from there.
struct SearchContext {
  std::vector<PlanSpace> spaces;
  std::vector<int> system_of;                              ///< One a space.
  std::vector<std::unique_ptr<EstimateContext>> contexts;  ///< One a system.
  std::vector<std::optional<Economics>> economics;         ///< One a system.

  /// Errors (bad_input): prices that the goal needs and that are not known.
  explicit SearchContext(const SearchRequest& request);

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
  EstimateContext& estimates(int space) const {
    return *contexts[static_cast<std::size_t>(system_of[static_cast<std::size_t>(space)])];
  }
  const Economics* prices(int space) const {
    const auto& known =
        economics[static_cast<std::size_t>(system_of[static_cast<std::size_t>(space)])];
    return known ? &*known : nullptr;
  }
};

/// True where `one` may in truth be as good as `best`: zero lies in the range of the difference of
/// their scores (StepDifference), where errors that both plans have in common cancel. With the
/// fewest GPUs as goal only plans of as many can tie. On a Pareto front nothing but the best ties:
/// plans with less memory are slower for it.
bool is_tie(const Found& one, const Found& best, const SearchRequest& request);

}  // namespace orrery
