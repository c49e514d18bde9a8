#pragma once

#include "sim/search/search.hpp"

namespace orrery {

/// Whether `one` may in truth be as good as `best`: zero lies in the range of the difference of
/// their scores (StepDifference), where errors that both plans have in common cancel. With the
/// fewest GPUs as goal only plans of as many can tie. On a Pareto front nothing but the best ties:
/// plans with less memory are slower for it.
bool is_tie(const Found& one, const Found& best, const SearchRequest& request);

}  // namespace orrery
