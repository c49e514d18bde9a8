#include "sim/analysis/validate/coverage.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/core/statistics.hpp"
#include "sim/work/result/own_runs.hpp"

namespace orrery {
namespace {

double square(double x) { return x * x; }

double deviations_needed(const Comparison& step) {
  return std::log(step.measured / step.predicted) / range_deviations;
}

bool is_inside(const Comparison& step, double training) {
  const StepRange& range = *step.range;
  return square(deviations_needed(step)) <=
         range.price_variance() + square(training) * range.training_weight();
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

template <class Keep>
std::vector<Comparison> steps_of(const std::vector<ValidationReport>& reports, const Keep& keep) {
  std::vector<Comparison> steps;
  for (const ValidationReport& report : reports)
    for (const Comparison& one : report.comparisons)
      if (one.range && keep(report, one)) steps.push_back(one);
  return steps;
}

}  // namespace

double training_error_of(const std::vector<Comparison>& steps) {
  std::vector<double> needed;
  for (const Comparison& step : steps)
    needed.push_back(std::max(0.0, square(deviations_needed(step)) - step.range->price_variance()) /
                     step.range->training_weight());
  return std::sqrt(conformal_quantile(std::move(needed), range_coverage));
}

std::vector<Coverage> coverage_of(const std::vector<ValidationReport>& reports) {
  std::vector<Coverage> list;
  for (const ValidationReport& report : reports) {
    Coverage coverage{report.file};
    std::map<StepClass, double> from_others;
    for (const Comparison& step : report.comparisons) {
      if (!step.range) continue;
      ++coverage.steps;
      coverage.inside +=
          step.measured >= step.range->low().si() && step.measured <= step.range->high().si();
      coverage.half_width += (step.range->high() - step.range->low()) / (2.0 * step.range->step);
      for (const Comparison* other = &step + 1; other != &report.comparisons.back() + 1; ++other)
        if (other->range && are_comparable(*step.range, *other->range)) {
          ++coverage.pairs;
          coverage.pairs_inside += differs_as_predicted(step, *other);
        }
      const StepClass of = step.range->errors.step_class;
      const auto [known, fresh] = from_others.try_emplace(of);
      if (fresh)
        known->second = training_error_of(
            steps_of(reports, [&](const ValidationReport& other, const Comparison& one) {
              return &other != &report && one.range->errors.step_class == of;
            }));
      if (std::isnan(known->second)) continue;
      ++coverage.left_out_steps;
      coverage.left_out_inside += is_inside(step, known->second);
    }
    if (coverage.steps == 0) continue;
    coverage.half_width /= coverage.steps;
    list.push_back(coverage);
  }
  return list;
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

namespace {

PublishedSteps summary_of(const std::vector<Comparison>& steps) {
  const auto runs = static_cast<double>(steps.size());
  std::vector<double> errors, from_offset, prices;
  for (const Comparison& step : steps) errors.push_back(std::log(step.measured / step.predicted));
  PublishedSteps sum;
  sum.runs = static_cast<int>(steps.size());
  sum.offset = runs / (runs + 1.0) * median(errors);
  for (const double error : errors) from_offset.push_back(std::abs(error - sum.offset));
  for (const Comparison& step : steps) prices.push_back(std::sqrt(step.range->price_variance()));
  sum.spread = conformal_quantile(std::move(from_offset), range_coverage);
  sum.prices = conformal_quantile(std::move(prices), range_coverage);
  return sum;
}

}  // namespace

std::vector<PublishedClass> published_classes(const std::vector<ValidationReport>& reports) {
  constexpr std::size_t enough = 9;  // Of fewer, no quantile of nine in ten.
  std::map<std::pair<std::string, StepClass>, std::vector<Comparison>> by_class;
  for (const Comparison& step :
       steps_of(reports, [](const ValidationReport&, const Comparison&) { return true; }))
    by_class[{step.range->software, step.range->errors.step_class}].push_back(step);
  std::vector<PublishedClass> classes;
  for (const auto& [of, steps] : by_class)
    if (steps.size() >= enough) classes.push_back({of.first, of.second, summary_of(steps)});
  return classes;
}

std::map<StepClass, double> training_errors(const std::vector<ValidationReport>& reports) {
  std::map<StepClass, double> errors;
  for (const Comparison& step :
       steps_of(reports, [](const ValidationReport&, const Comparison&) { return true; }))
    errors[step.range->errors.step_class] = 0.0;
  for (auto& entry : errors)
    entry.second =
        training_error_of(steps_of(reports, [&](const ValidationReport&, const Comparison& one) {
          return one.range->errors.step_class == entry.first;
        }));
  return errors;
}

}  // namespace orrery
