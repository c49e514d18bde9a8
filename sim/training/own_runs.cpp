#include "sim/training/own_runs.hpp"

#include <cassert>
#include <cmath>

#include "sim/core/conditional_normal.hpp"

namespace orrery {
namespace {

double squared(double x) { return x * x; }

// Steps of one plan in several releases of its software: 12 of NVIDIA's dgxc-benchmarking
// (tests/validation/training/dgxc.json) deviate so much from their mean.
constexpr double repeated = 0.026;

using Row = std::vector<double>;

// Of each step the first with the same kernels: they have the errors of their shapes in common.
std::vector<std::size_t> first_alike(const std::vector<const StepRange*>& steps) {
  std::vector<std::size_t> first;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    first.push_back(i);
    for (std::size_t k = 0; k < i; ++k)
      if (first[k] == k && first[i] == i && same_kernels(*steps[k], *steps[i])) first[i] = k;
  }
  return first;
}

// Of all pairs, with nothing but the scatter of repeated runs between runs of one plan.
std::vector<Row> covariances(const std::vector<const StepRange*>& steps) {
  const std::vector<std::size_t> alike = first_alike(steps);
  std::vector<Row> all(steps.size(), Row(steps.size()));
  for (std::size_t i = 0; i < steps.size(); ++i)
    for (std::size_t k = 0; k < steps.size(); ++k) {
      const StepRange &one = *steps[i], &other = *steps[k];
      all[i][k] = common_variance(one, other);
      if (alike[i] == alike[k]) all[i][k] += one.errors.own * other.errors.own;
      if (i == k) all[i][k] += squared(repeated);
    }
  return all;
}

}  // namespace

Seconds StepByRuns::step(const StepRange& predicted) const {
  return predicted.step * std::exp(offset);
}
Seconds StepByRuns::low(const StepRange& predicted) const {
  return predicted.step * std::exp(offset - range_deviations * deviation);
}
Seconds StepByRuns::high(const StepRange& predicted) const {
  return predicted.step * std::exp(offset + range_deviations * deviation);
}

StepByRuns by_runs(const StepRange& step, const std::vector<MeasuredRun>& runs) {
  assert(!runs.empty());
  std::vector<const StepRange*> steps;
  Row errors;
  for (const MeasuredRun& run : runs) {
    steps.push_back(&run.predicted);
    errors.push_back(std::log(run.measured / run.predicted.step));
  }
  steps.push_back(&step);  // The last row and column.
  const ConditionalNormal after = conditional_normal(covariances(steps), errors);
  return {static_cast<int>(runs.size()), after.mean, std::sqrt(after.variance)};
}

}  // namespace orrery
