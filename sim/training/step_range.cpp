#include "sim/training/step_range.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "sim/core/statistics.hpp"

namespace orrery {
namespace {

constexpr Tag tags[] = {Tag::measured, Tag::interpolated, Tag::default_value};

double sigma(const StepRange& range, std::size_t kind, Tag tag) {
  return range.errors.of[kind][static_cast<std::size_t>(tag)];
}

Seconds of_kind(const TimeByPrice& path, std::size_t kind) {
  Seconds sum;
  for (Tag tag : tags) sum += path.at(static_cast<PriceKind>(kind), tag);
  return sum;
}

double square(double x) { return x * x; }

bool same_prices(const StepRange& a, const StepRange& b, PriceKind kind) {
  switch (kind) {
    case PriceKind::gemm:
    case PriceKind::grouped_gemm:
    case PriceKind::batched_gemm:
      return a.gpu == b.gpu && a.dtype == b.dtype;
    case PriceKind::host:
      return true;
    case PriceKind::attention:
    case PriceKind::memory:
    case PriceKind::nvlink_latency:
    case PriceKind::nvlink_bytes:
      return a.gpu == b.gpu;
    case PriceKind::network_latency:
    case PriceKind::network_bytes:
    case PriceKind::exchange:
      break;
  }
  return a.system == b.system;
}

// Variance that two times with standard deviations a and b add to their difference: (b - a)^2 if
// they have one error in common, a^2 + b^2 if their errors are independent.
double variance(double a, double b, bool common) {
  return common ? square(b - a) : square(a) + square(b);
}

}  // namespace

double StepRange::price_variance() const {
  double sum = 0.0;
  for (std::size_t kind = 0; kind < price_kinds; ++kind)
    for (Tag tag : tags)
      sum += square(path.at(static_cast<PriceKind>(kind), tag) / step * sigma(*this, kind, tag));
  return sum;
}

double StepRange::training_weight() const {
  double sum = 0.0;
  for (std::size_t kind = 0; kind < price_kinds; ++kind) sum += square(of_kind(path, kind) / step);
  return sum;
}

Seconds StepRange::deviation() const {
  return step * std::sqrt(price_variance() + square(errors.training) * training_weight());
}

namespace {

// Limits of the range, as logarithms of multiples of the step.
std::pair<double, double> limits(const StepRange& range) {
  if (!range.errors.published) {
    const double deviation = range.deviation() / range.step;
    return {-range_deviations * deviation, range_deviations * deviation};
  }
  const PublishedSteps& published = *range.errors.published;
  const double wider = published.times_wider(std::sqrt(range.price_variance()));
  const auto limit = [&](double theirs) {
    return published.offset + wider * (theirs - published.offset);
  };
  return {std::min(0.0, limit(published.low)), std::max(0.0, limit(published.high))};
}

}  // namespace

Seconds StepRange::low() const { return step * std::exp(limits(*this).first); }

Seconds StepRange::high() const { return step * std::exp(limits(*this).second); }

StepRange StepRange::scaled(double factor) const {
  StepRange range = *this;
  range.step = factor * step;
  range.path = {};
  range.path.add(path, factor);
  return range;
}

bool same_kernels(const StepRange& a, const StepRange& b) {
  constexpr double rounding = 1e-3;
  if (a.gpu != b.gpu || a.software != b.software || a.dtype != b.dtype) return false;
  for (std::size_t kind = 0; kind < static_cast<std::size_t>(PriceKind::host); ++kind)
    if (std::abs((of_kind(a.path, kind) - of_kind(b.path, kind)) / a.step) > rounding) return false;
  return true;
}

double common_variance(const StepRange& one, const StepRange& other) {
  double sum = 0.0;
  for (std::size_t kind = 0; kind < price_kinds; ++kind) {
    const auto of = static_cast<PriceKind>(kind);
    if (same_prices(one, other, of))
      for (Tag tag : tags)
        sum += one.path.at(of, tag) / one.step * sigma(one, kind, tag) *
               (other.path.at(of, tag) / other.step * sigma(other, kind, tag));
    if (one.software == other.software)
      sum += of_kind(one.path, kind) / one.step * one.errors.training *
             (of_kind(other.path, kind) / other.step * other.errors.training);
  }
  return sum;
}

StepDifference difference(const StepRange& one, const StepRange& other, bool same_plan) {
  double sum = 0.0;
  for (std::size_t kind = 0; kind < price_kinds; ++kind) {
    const auto of = static_cast<PriceKind>(kind);
    for (Tag tag : tags)
      sum += variance(one.path.at(of, tag).si() * sigma(one, kind, tag),
                      other.path.at(of, tag).si() * sigma(other, kind, tag),
                      same_prices(one, other, of));
    sum += variance(of_kind(one.path, kind).si() * one.errors.training,
                    of_kind(other.path, kind).si() * other.errors.training,
                    one.software == other.software);
  }
  if (!same_kernels(one, other))
    sum += variance(one.step.si() * one.errors.own, other.step.si() * other.errors.own,
                    same_plan && one.gpu == other.gpu);
  const Seconds mean = other.step - one.step;
  const bool rounding = std::abs(mean / one.step) < 1e-9;  // Within clock resolution.
  return {rounding ? Seconds{} : mean, Seconds{std::sqrt(sum)}};
}

namespace {

double squared(double x) { return x * x; }

// Steps of one plan in several releases of its software: 12 of NVIDIA's dgxc-benchmarking
// (tests/validation/training/dgxc.json) deviate so much from their mean.
constexpr double repeated = 0.026;

using Row = std::vector<double>;

// Index of the first step with the same kernels, whose errors of shapes a step has in common.
std::vector<std::size_t> first_alike(const std::vector<const StepRange*>& steps) {
  std::vector<std::size_t> first;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    first.push_back(i);
    for (std::size_t k = 0; k < i; ++k)
      if (first[k] == k && first[i] == i && same_kernels(*steps[k], *steps[i])) first[i] = k;
  }
  return first;
}

// Covariances of all pairs; runs of one plan differ only by the scatter of repeated runs.
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
