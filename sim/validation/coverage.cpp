#include "sim/validation/coverage.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "sim/core/statistics.hpp"
#include "sim/serving/serving_error.hpp"
#include "sim/training/step_range.hpp"

namespace orrery {
namespace {

constexpr std::size_t enough = 9;  // Fewer have no 90 % quantile.

// The typical deviation by prices is this quantile of the steps'. More than that widens a range, as
// it must for a GPU without tables: predicted without any, 91 % of all published steps lie in such
// ranges. (A quantile of 0.90 gives 92 %, 0.95 gives 86 %.)
constexpr double usual_kv_share = 0.92;

double price_deviation(const Comparison& step) { return std::sqrt(step.range->price_variance()); }

double usual_deviation(const std::vector<Comparison>& steps) {
  std::vector<double> deviations;
  for (const Comparison& step : steps) deviations.push_back(price_deviation(step));
  const double largest = *std::max_element(deviations.begin(), deviations.end());
  const double usual = conformal_quantile(std::move(deviations), usual_kv_share);
  return std::isfinite(usual) ? usual : largest;
}

double root_mean_square(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value * value;
  return values.empty() ? 0.0 : std::sqrt(sum / static_cast<double>(values.size()));
}

// The errors of one software are skewed: a distance from the offset is divided by the root of the
// mean distance on its side, which attributes half of the skew to chance, as nine steps determine
// it poorly.
PublishedSteps summary_of(const std::string& software, const std::vector<Comparison>& steps) {
  const auto runs = static_cast<double>(steps.size());
  std::vector<double> errors, below, above, distances;
  for (const Comparison& step : steps) errors.push_back(std::log(step.measured / step.predicted));
  PublishedSteps sum;
  sum.software = software;
  sum.runs = static_cast<int>(steps.size());
  sum.offset = runs / (runs + 1.0) * median(errors);
  sum.prices = usual_deviation(steps);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double distance = (errors[i] - sum.offset) / sum.times_wider(price_deviation(steps[i]));
    (distance < 0.0 ? below : above).push_back(std::abs(distance));
  }
  const double down = std::sqrt(root_mean_square(below)), up = std::sqrt(root_mean_square(above));
  for (const double distance : below) distances.push_back(distance / down);
  for (const double distance : above) distances.push_back(distance > 0.0 ? distance / up : 0.0);
  const double reach = conformal_quantile(std::move(distances), range_coverage);
  sum.low = sum.offset - reach * down;
  sum.high = sum.offset + reach * up;
  return sum;
}

// The bias of other frameworks does not predict that of a new one.
PublishedSteps summary_of_any(const std::vector<Comparison>& steps) {
  PublishedSteps sum;
  sum.runs = static_cast<int>(steps.size());
  sum.prices = usual_deviation(steps);
  std::vector<double> distances;
  for (const Comparison& step : steps)
    distances.push_back(std::abs(std::log(step.measured / step.predicted)) /
                        sum.times_wider(price_deviation(step)));
  sum.high = conformal_quantile(std::move(distances), range_coverage);
  sum.low = -sum.high;
  return sum;
}

}  // namespace

std::vector<Comparison> steps_with_ranges(const std::vector<ValidationReport>& reports,
                                          const ValidationReport* left_out) {
  std::vector<Comparison> steps;
  for (const ValidationReport& report : reports)
    for (const Comparison& one : report.comparisons)
      if (one.range && &report != left_out) steps.push_back(one);
  return steps;
}

std::vector<PublishedClass> published_classes(const std::vector<ValidationReport>& reports,
                                              const ValidationReport* left_out) {
  std::map<std::pair<std::string, StepClass>, std::vector<Comparison>> by_class;
  std::map<StepClass, std::vector<Comparison>> of_any;
  for (const Comparison& step : steps_with_ranges(reports, left_out)) {
    const StepClass of = step.range->errors.step_class;
    by_class[{step.range->software, of}].push_back(step);
    of_any[of_any_software(of)].push_back(step);
  }
  std::vector<PublishedClass> classes;
  for (const auto& [step, steps] : of_any)
    if (steps.size() >= enough) classes.push_back({step, summary_of_any(steps)});
  for (const auto& [of, steps] : by_class)
    if (steps.size() >= enough) classes.push_back({of.second, summary_of(of.first, steps)});
  return classes;
}

namespace {

double square(double x) { return x * x; }

double deviations_needed(const Comparison& step) {
  return std::log(step.measured / step.predicted) / range_deviations;
}

bool are_comparable(const StepRange& a, const StepRange& b) {
  return a.system == b.system && a.software == b.software && a.dtype == b.dtype &&
         !a.errors.step_class.experts && !b.errors.step_class.experts;
}

// The difference of logarithms is to first order that of steps of 1 s.
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

namespace {

struct Residual {
  const ValidationReport* file = nullptr;
  double size = 0.0;  // |ln(measured / predicted)|
  double error = 0.0;
};

template <class Keep>
std::vector<double> sizes(const std::vector<Residual>& residuals, const Keep& keep) {
  std::vector<double> all;
  for (const Residual& one : residuals)
    if (keep(one)) all.push_back(one.size);
  return all;
}

const char* name_of(ServingFigure figure) {
  if (figure == ServingFigure::ttft) return "ttft";
  return figure == ServingFigure::tpot ? "tpot" : "throughput";
}

}  // namespace

std::vector<ServingCoverage> serving_coverage_of(const std::vector<ValidationReport>& reports) {
  std::map<std::pair<ServingFigure, bool>, std::vector<Residual>> classes;
  for (const ValidationReport& report : reports)
    for (const Comparison& one : report.comparisons) {
      const auto figure = serving_figure(one.quantity);
      if (!figure || !one.serving) continue;
      classes[{*figure, *figure == ServingFigure::tpot && one.serving->experts}].push_back(
          {&report, std::abs(std::log(one.measured / one.predicted)), one.serving->error});
    }
  std::vector<ServingCoverage> list;
  for (const auto& [key, residuals] : classes) {
    ServingCoverage coverage{name_of(key.first), key.second};
    coverage.cases = static_cast<int>(residuals.size());
    const auto all = sizes(residuals, [](const Residual&) { return true; });
    coverage.error = conformal_quantile(all, serving_coverage);
    for (const ValidationReport& report : reports) {
      const auto others =
          sizes(residuals, [&](const Residual& other) { return other.file != &report; });
      const double error = conformal_quantile(others, serving_coverage);
      for (const Residual& one : residuals) {
        if (one.file != &report) continue;
        coverage.inside += one.size <= one.error;
        if (std::isnan(error)) continue;
        ++coverage.left_out_cases;
        coverage.left_out_inside += one.size <= error;
      }
    }
    list.push_back(coverage);
  }
  return list;
}

}  // namespace orrery
