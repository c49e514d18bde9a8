#include "sim/search/compared_run.hpp"

#include <cassert>

namespace orrery {
namespace {

// As if each second of the step were the days of the run that it takes.
StepRange range_of_days(const ComparedRun& one) {
  const StepRange& step = one.plan->range;
  return step.scaled(one.run.figures.days.mean / step.step.si());
}

}  // namespace

RunDifference difference(const ComparedRun& one, const ComparedRun& other) {
  const std::vector<double>& before = one.run.figures.days_of;
  const std::vector<double>& after = other.run.figures.days_of;
  assert(before.size() == after.size());
  std::vector<double> longer;
  for (std::size_t i = 0; i < before.size(); ++i) longer.push_back(after[i] - before[i]);
  const bool same_plan = one.plan->plan == other.plan->plan;
  return {chance_range(std::move(longer)),
          difference(range_of_days(one), range_of_days(other), same_plan).deviation.si()};
}

}  // namespace orrery
