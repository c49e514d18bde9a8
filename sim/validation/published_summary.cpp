#include "sim/validation/published_summary.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "sim/core/statistics.hpp"

namespace orrery {
namespace {

constexpr std::size_t enough = 9;  // Of fewer, no quantile of nine in ten.

// What prices account for in so many steps is usual. More makes a range wider, which it must where
// a GPU has no tables: predicted without any, 91 % of all published steps lie in such ranges. (With
// a share of 0.90 it is 92 %, with 0.95 it is 86 %.)
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

// Errors of one software lie farther to one side than to the other: their distance from the offset
// counts by the root of how far they lie on that side, which leaves half of the difference to
// chance, as nine steps say little of it.
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

// Whether others' software is too fast or too slow says nothing of one more.
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

}  // namespace orrery
