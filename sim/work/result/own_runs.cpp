#include "sim/work/result/own_runs.hpp"

#include <cassert>
#include <cmath>

namespace orrery {
namespace {

double square(double x) { return x * x; }

// Steps of one plan in several releases of its software: 12 of NVIDIA's dgxc-benchmarking
// (tests/validation/training/dgxc.json) deviate so much from their mean.
constexpr double repeated = 0.026;

using Row = std::vector<double>;

// A = L L', the lower triangle; A is symmetric and positive definite.
std::vector<Row> cholesky(std::vector<Row> a) {
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t k = 0; k <= i; ++k) {
      double sum = a[i][k];
      for (std::size_t j = 0; j < k; ++j) sum -= a[i][j] * a[k][j];
      assert(i != k || sum > 0.0);
      a[i][k] = i == k ? std::sqrt(sum) : sum / a[k][k];
    }
  return a;
}

// L^-1 b.
Row solved(const std::vector<Row>& l, Row b) {
  for (std::size_t i = 0; i < b.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) b[i] -= l[i][j] * b[j];
    b[i] /= l[i][i];
  }
  return b;
}

double product(const Row& a, const Row& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

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
      if (i == k) all[i][k] += square(repeated);
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
  std::vector<Row> among = covariances(steps);
  Row with_step = std::move(among.back());
  among.pop_back();
  const double before = with_step.back();
  with_step.pop_back();
  for (Row& row : among) row.pop_back();
  const std::vector<Row> l = cholesky(std::move(among));
  const Row c = solved(l, std::move(with_step));
  return {static_cast<int>(runs.size()), product(c, solved(l, std::move(errors))),
          std::sqrt(before - product(c, c))};
}

}  // namespace orrery
