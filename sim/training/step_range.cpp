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

bool same_software(const StepRange& one, const StepRange& other) {
  return one.software == other.software && one.stands_in == other.stands_in;
}

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

double StepRange::half_width() const {
  if (!errors.published) return range_deviations * (deviation() / step);
  return errors.published->half_width(step, stands_in, std::sqrt(price_variance()));
}

Seconds StepRange::low() const { return step / std::exp(half_width()); }

Seconds StepRange::high() const { return step * std::exp(half_width()); }

StepRange StepRange::scaled(double factor) const {
  StepRange range = *this;
  range.step = factor * step;
  range.path = {};
  range.path.add(path, factor);
  return range;
}

namespace {

// True if both spend the same time on each kind of kernel and differ only in traffic and order.
bool same_kernels(const StepRange& a, const StepRange& b) {
  constexpr double rounding = 1e-3;
  if (a.gpu != b.gpu || !same_software(a, b) || a.dtype != b.dtype) return false;
  for (std::size_t kind = 0; kind < static_cast<std::size_t>(PriceKind::host); ++kind)
    if (std::abs((of_kind(a.path, kind) - of_kind(b.path, kind)) / a.step) > rounding) return false;
  return true;
}

}  // namespace

StepDifference difference(const StepRange& one, const StepRange& other, bool same_plan) {
  double sum = 0.0;
  for (std::size_t kind = 0; kind < price_kinds; ++kind) {
    const auto of = static_cast<PriceKind>(kind);
    for (Tag tag : tags)
      sum += variance(one.path.at(of, tag).si() * sigma(one, kind, tag),
                      other.path.at(of, tag).si() * sigma(other, kind, tag),
                      same_prices(one, other, of));
    sum +=
        variance(of_kind(one.path, kind).si() * one.errors.training,
                 of_kind(other.path, kind).si() * other.errors.training, same_software(one, other));
  }
  if (!same_kernels(one, other))
    sum += variance(one.step.si() * one.errors.own, other.step.si() * other.errors.own,
                    same_plan && one.gpu == other.gpu);
  const Seconds mean = other.step - one.step;
  const bool rounding = std::abs(mean / one.step) < 1e-9;  // Within clock resolution.
  return {rounding ? Seconds{} : mean, Seconds{std::sqrt(sum)}};
}

namespace {

double variance_of(double half_width) { return square(half_width / range_deviations); }

// The parts of a step's variance. That of the plan and the step's own are the same for all; what a
// wider range has beyond them is common to all runs of the software.
struct ErrorParts {
  double common = 0.0, plan = 0.0, own = 0.0;
};

// After one run of the same plan the variance is own (2 - own / all): that of same_plan.
ErrorParts parts_of(const StepRange& step) {
  assert(step.errors.published);
  const PublishedSteps& published = *step.errors.published;
  const double all = variance_of(published.described);
  ErrorParts parts;
  parts.own = all * (1.0 - std::sqrt(1.0 - square(published.same_plan / published.described)));
  parts.plan = (1.0 - published.of_publication) * (all - parts.own);
  parts.common = std::max(0.0, variance_of(step.half_width()) - parts.own - parts.plan);
  return parts;
}

}  // namespace

Seconds StepByRuns::step(const StepRange& predicted) const {
  return predicted.step * std::exp(offset);
}
Seconds StepByRuns::low(const StepRange& predicted) const {
  return predicted.step * std::exp(offset - half_width);
}
Seconds StepByRuns::high(const StepRange& predicted) const {
  return predicted.step * std::exp(offset + half_width);
}

StepByRuns by_runs(const StepRange& step, const std::string& plan,
                   const std::vector<MeasuredRun>& runs) {
  assert(!runs.empty());
  std::vector<MeasuredRun> all = runs;
  all.push_back({Seconds{}, step, plan});  // The last row and column.
  std::vector<ErrorParts> parts;
  for (const MeasuredRun& run : all) parts.push_back(parts_of(run.predicted));
  std::vector<std::vector<double>> covariances(all.size(), std::vector<double>(all.size()));
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t k = 0; k < all.size(); ++k) {
      double& both = covariances[i][k];
      // Two runs share the smaller of their softwares' variances: what makes one range wider (a
      // short step, poorly known hardware) does not affect the other run.
      if (same_software(all[i].predicted, all[k].predicted))
        both += std::min(parts[i].common, parts[k].common);
      if (all[i].plan == all[k].plan) both += parts[i].plan;
      if (i == k) both += parts[i].own;
    }
  StepByRuns found{static_cast<int>(runs.size())};
  std::vector<double> errors;
  for (const MeasuredRun& run : runs) {
    errors.push_back(std::log(run.measured / run.predicted.step));
    found.same_plan += run.plan == plan;
  }
  const ConditionalNormal after = conditional_normal(std::move(covariances), errors);
  found.offset = after.mean;
  found.half_width =
      std::max(range_deviations * std::sqrt(after.variance), step.errors.published->same_plan);
  return found;
}

}  // namespace orrery
