#include "sim/validation/coverage.hpp"

#include <algorithm>
#include <cmath>

#include "sim/core/statistics.hpp"
#include "sim/training/own_runs.hpp"
#include "sim/validation/published_summary.hpp"

namespace orrery {
namespace {

double square(double x) { return x * x; }

double deviations_needed(const Comparison& step) {
  return std::log(step.measured / step.predicted) / range_deviations;
}

bool are_comparable(const StepRange& a, const StepRange& b) {
  return a.system == b.system && a.software == b.software && a.dtype == b.dtype &&
         !a.errors.step_class.experts && !b.errors.step_class.experts;
}

// To first order the difference of logarithms is that of steps of 1 s.
bool differs_as_predicted(const Comparison& a, const Comparison& b) {
  const auto in_unit = [](const StepRange& range) { return range.scaled(1.0 / range.step.si()); };
  const double deviation = difference(in_unit(*a.range), in_unit(*b.range)).deviation.si();
  return std::abs(deviations_needed(a) - deviations_needed(b)) <= deviation;
}

bool is_inside(const Comparison& step, const StepRange& range) {
  return step.measured >= range.low().si() && step.measured <= range.high().si();
}

double half_width(const StepRange& range) {
  return (range.high() - range.low()) / (2.0 * range.step);
}

}  // namespace

double training_error_of(const std::vector<Comparison>& steps) {
  std::vector<double> needed;
  for (const Comparison& step : steps)
    needed.push_back(std::max(0.0, square(deviations_needed(step)) - step.range->price_variance()) /
                     step.range->training_weight());
  return std::sqrt(conformal_quantile(std::move(needed), range_coverage));
}

std::vector<ByOthers> predicted_by_others(const std::vector<ValidationReport>& reports) {
  std::vector<ByOthers> list;
  for (const ValidationReport& report : reports) {
    std::vector<MeasuredRun> runs;
    for (const Comparison& one : report.comparisons)
      if (one.range) runs.push_back({Seconds{one.measured}, *one.range});
    if (runs.size() < 2) continue;
    ByOthers family{report.file, static_cast<int>(runs.size())};
    for (std::size_t i = 0; i < runs.size(); ++i) {
      std::vector<MeasuredRun> others = runs;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      const StepRange& predicted = runs[i].predicted;
      const StepByRuns found = by_runs(predicted, others);
      const Seconds low = found.low(predicted), high = found.high(predicted);
      family.inside += runs[i].measured >= low && runs[i].measured <= high;
      family.mean_abs_error += std::abs(found.step(predicted) / runs[i].measured - 1.0);
      family.half_width += (high - low) / (2.0 * predicted.step);
    }
    family.mean_abs_error /= family.steps;
    family.half_width /= family.steps;
    list.push_back(family);
  }
  return list;
}

std::vector<Coverage> coverage_of(const std::vector<ValidationReport>& reports) {
  std::vector<Coverage> list;
  for (const ValidationReport& report : reports) {
    Coverage coverage{report.file};
    const std::vector<PublishedClass> of_others = published_classes(reports, &report);
    for (const Comparison& step : report.comparisons) {
      if (!step.range) continue;
      ++coverage.steps;
      coverage.inside += is_inside(step, *step.range);
      coverage.half_width += half_width(*step.range);
      for (const Comparison* other = &step + 1; other != &report.comparisons.back() + 1; ++other)
        if (other->range && are_comparable(*step.range, *other->range)) {
          ++coverage.pairs;
          coverage.pairs_inside += differs_as_predicted(step, *other);
        }
      const PublishedSteps* like_it =
          find_published(of_others, "", of_any_software(step.range->errors.step_class));
      if (!like_it) continue;
      StepRange range = *step.range;
      range.errors.published = *like_it;
      ++coverage.left_out_steps;
      coverage.left_out_inside += is_inside(step, range);
      coverage.left_out_half_width += half_width(range);
    }
    if (coverage.steps == 0) continue;
    coverage.half_width /= coverage.steps;
    if (coverage.left_out_steps > 0) coverage.left_out_half_width /= coverage.left_out_steps;
    list.push_back(coverage);
  }
  return list;
}

std::map<StepClass, double> training_errors(const std::vector<ValidationReport>& reports) {
  std::map<StepClass, std::vector<Comparison>> by_class;
  for (const Comparison& step : steps_with_ranges(reports))
    by_class[step.range->errors.step_class].push_back(step);
  std::map<StepClass, double> errors;
  for (const auto& [of, steps] : by_class) errors[of] = training_error_of(steps);
  return errors;
}

}  // namespace orrery
