#include "sim/search/ties.hpp"

namespace orrery {
namespace {

// All objectives but the number of GPUs are a plan's step time times what a second of it counts.
StepRange range_of_score(const Found& found, Goal goal) {
  const StepRange& range = found.result.range;
  return goal == Goal::gpus ? range : range.scaled(found.score / range.step.si());
}

}  // namespace

bool is_tie(const Found& one, const Found& best, const SearchRequest& request) {
  if (&one == &best) return true;
  if (request.pareto || (request.goal == Goal::gpus && one.score != best.score)) return false;
  return difference(range_of_score(best, request.goal), range_of_score(one, request.goal)).is_tie();
}

}  // namespace orrery
