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
  std::optional<FailuresMeant> failures;     ///< Of goodput.
  std::optional<double> tokens;              ///< What training on them takes is said of each plan.
  std::string economics;                     ///< A file over the catalog's prices; "" for none.
  double max_memory = safe_share_of_memory;  ///< Share of the GPU's that a plan may fill.
  bool pareto = false;  ///< All plans that no other beats in time and memory at once.
  /// Lists plans apart from each other that have the same layout (PlanDimension::of_layout);
  /// otherwise the best plan of each layout.
  bool all_settings = false;
  int top = 10;
  int workers = 1;
  /// Wall clock, of which about half goes into enumerating, which goes on until a plan fits; then
  /// the search stops unproven. What is listed is simulated once more for its figures.
  std::optional<Seconds> budget;
};

/// A plan with its place in the ranking.
struct Found {
  Result result;
  double score = 0.0;
  bool tie = false;   ///< With the best (ties.hpp).
  std::string flags;  ///< For `orrery estimate`.
};

struct SearchResult {
  std::vector<Found> plans;  ///< Best first; of a Pareto front the fastest first.
  std::int64_t legal = 0;
  std::int64_t fits = 0;  ///< = simulated + bounded_out + what the budget left.
  std::int64_t simulated = 0;
  std::int64_t bounded_out = 0;  ///< Whose bound proves that they cannot be in the list.
  bool interrupted = false;      ///< By Ctrl-C, as a budget would.
  bool optimal = true;           ///< False where the budget ended the search.
  double best_unexplored = 0.0;  ///< If not optimal: no known plan that is left scores below this.
  /// tp x pp of which the budget let not all plans be enumerated: nothing is known of the others.
  int parts_cut_short = 0;
  int parts = 0;
};

/// A plan that a search has simulated, before the list is final.
struct SimulatedPlan {
  std::int32_t number = 0;  ///< Which no other plan of the search has.
  int gpus = 0;
  std::int64_t gbs = 0;
  std::string flags;  ///< As Found has them.
  Seconds step;
  double tokens_per_s_per_gpu = 0.0;
  double memory = 0.0;  ///< Of the fullest stage, as a share of the GPU's.
};

/// How far a search is.
struct SearchProgress {
  int parts = 0;  ///< Of all spaces, and how many of them are enumerated.
  int parts_done = 0;
  std::int64_t legal = 0;
  std::int64_t fits = 0;
  std::int64_t simulated = 0;
  std::optional<double> best;         ///< Lowest score so far.
  std::optional<double> bound;        ///< No plan that is left scores below this.
  std::optional<SimulatedPlan> plan;  ///< That was simulated last.
  std::vector<std::int32_t> leading;  ///< Numbers of those that lead so far, best first.
};

/// The best plans of all that divide and fit: what simulating every one of them would find. In the
/// order of their bounds they are simulated until no other can enter the list. Of plans that score
/// the same to a nanosecond of step time the one with the least memory is first, then in the order
/// of enumeration, so that the answer does not depend on `workers`. Errors (infeasible): no plan
/// divides, fits, or meets the deadline: which constraint leaves none. `watch` hears of every step.
/// Where an Interruption lives, Ctrl-C ends the search with what it has found so far.
SearchResult search(const SearchRequest& request,
                    const std::function<void(const SearchProgress&)>& watch = {});

/// The same of a shard's plans alone; that there are none is no error. Of plans that others are
/// known to beat, by `talk`, none is simulated.
SearchShare search_share(const SearchRequest& request, Shard shard, ShardTalk& talk,
                         const std::function<void(const SearchProgress&)>& watch = {});
/// What search() finds, from what all of its shards found: the same list, and counts added up.
SearchResult put_together(const SearchRequest& request, const std::vector<SearchShare>& shares);

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

/// Whether `one` may in truth be as good as `best`: zero lies in the range of the difference of
/// their scores (StepDifference), where errors that both plans have in common cancel. With the
/// fewest GPUs as goal only plans of as many can tie. On a Pareto front nothing but the best ties:
/// plans with less memory are slower for it.
bool is_tie(const Found& one, const Found& best, const SearchRequest& request);

}  // namespace orrery
