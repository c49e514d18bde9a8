#include "sim/validation/coverage.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "sim/core/statistics.hpp"
#include "sim/serving/serving_error.hpp"
#include "sim/training/step_range.hpp"

namespace orrery {
namespace {

// The usual deviation by prices is this quantile of the steps'. More than that widens a range, as
// it must for a GPU without tables: predicted without any, 91 % of all published steps lie in such
// ranges. (A quantile of 0.90 gives 92 %, 0.95 gives 86 %.)
constexpr double usual_prices_share = 0.92;

double price_deviation(const Comparison& step) { return std::sqrt(step.range->price_variance()); }

double error_of(const Comparison& step) { return std::log(step.measured / step.predicted); }

double square(double x) { return x * x; }

using Steps = std::vector<Comparison>;

std::map<std::string, Steps> by_publication(const std::vector<ValidationReport>& reports,
                                            bool stands_in) {
  std::map<std::string, Steps> publications;
  for (const ValidationReport& report : reports)
    for (const Comparison& one : report.comparisons)
      if (one.range && one.range->errors.published && one.range->stands_in == stands_in)
        publications[one.publication].push_back(one);
  return publications;
}

// The quantile of a value of measurements, each with its part of its publication's vote; without
// the publication `left_out`, where it is not null.
template <class Measurement, class Value>
double quantile_of_votes(const std::map<std::string, std::vector<Measurement>>& publications,
                         double share, const Value& value, const std::string* left_out) {
  std::vector<std::pair<double, double>> votes;
  for (const auto& [publication, measurements] : publications)
    if (!left_out || publication != *left_out)
      for (const Measurement& one : measurements)
        votes.emplace_back(value(one), 1.0 / static_cast<double>(measurements.size()));
  return weighted_quantile(std::move(votes), share);
}

// Another publication than `left_out` is required.
PublishedSteps summary_of(const std::map<std::string, Steps>& publications,
                          const std::string* left_out) {
  PublishedSteps sum = *publications.begin()->second.front().range->errors.published;
  sum.publications = sum.steps = 0;
  for (const auto& [publication, steps] : publications) {
    if (left_out && publication == *left_out) continue;
    ++sum.publications;
    sum.steps += static_cast<int>(steps.size());
  }
  sum.prices = quantile_of_votes(publications, usual_prices_share, price_deviation, left_out);
  // The half-width with which PublishedSteps::half_width() just reaches a step.
  const auto needed = [&](const Comparison& step) {
    const double others =
        square(sum.share_missing(step.range->step)) + square(sum.less_known(price_deviation(step)));
    return std::sqrt(std::max(0.0, square(error_of(step)) - others));
  };
  sum.described = quantile_of_votes(publications, range_coverage, needed, left_out);
  return sum;
}

}  // namespace

std::optional<PublishedSteps> published_steps(const std::vector<ValidationReport>& reports,
                                              const std::string& left_out) {
  const std::map<std::string, Steps> publications = by_publication(reports, false);
  if (publications.size() <= publications.count(left_out)) return std::nullopt;
  return summary_of(publications, &left_out);
}

namespace {

// Sums of one publication, then means of all of them.
class MeanScores {
 public:
  void add(double error, double half_width) {
    constexpr double of_outside = 2.0 / (1.0 - range_coverage);
    ++steps_;
    sum_.half_width += half_width;
    sum_.in_range += std::abs(error) <= half_width;
    sum_.score += 2.0 * half_width + of_outside * std::max(0.0, std::abs(error) - half_width);
  }
  void end_of_publication() {
    if (steps_ == 0) return;
    ++publications_;
    means_.half_width += sum_.half_width / steps_;
    means_.in_range += sum_.in_range / steps_;
    means_.score += sum_.score / steps_;
    sum_ = {};
    steps_ = 0;
  }
  int publications() const { return publications_; }
  RangeScore::Means means() const {
    if (publications_ == 0) return {};
    return {means_.half_width / publications_, means_.in_range / publications_,
            means_.score / publications_};
  }

 private:
  int publications_ = 0, steps_ = 0;
  RangeScore::Means sum_, means_;
};

RangeScore score_of(const std::map<std::string, Steps>& publications, bool stands_in) {
  RangeScore score{stands_in, static_cast<int>(publications.size())};
  MeanScores as_printed, left_out, fixed, by_own_step;
  for (const auto& [publication, steps] : publications) {
    const bool known = !stands_in && publications.size() > 1;
    const std::optional<PublishedSteps> of_others =
        known ? std::optional{summary_of(publications, &publication)} : std::nullopt;
    for (const Comparison& step : steps) {
      ++score.steps;
      const StepRange& range = *step.range;
      as_printed.add(error_of(step), range.half_width());
      left_out.add(error_of(step),
                   of_others ? of_others->half_width(range.step, stands_in, price_deviation(step))
                             : range.half_width());
      fixed.add(error_of(step), stands_in ? 0.40 : 0.20);
      bool has_own = false;
      for (const Comparison& own : steps) {
        if (&own == &step || own.plan != step.plan) continue;
        const StepByRuns found =
            by_runs(range, step.plan, {{Seconds{own.measured}, *own.range, own.plan}});
        by_own_step.add(error_of(step) - found.offset, found.half_width);
        has_own = true;
      }
      score.pair_steps += has_own;
    }
    for (MeanScores* one : {&as_printed, &left_out, &fixed, &by_own_step})
      one->end_of_publication();
  }
  score.as_printed = as_printed.means();
  score.left_out = left_out.means();
  score.fixed = fixed.means();
  score.pair_publications = by_own_step.publications();
  score.by_own_step = by_own_step.means();
  return score;
}

}  // namespace

std::vector<RangeScore> range_scores(const std::vector<ValidationReport>& reports) {
  std::vector<RangeScore> scores;
  for (const bool stands_in : {false, true})
    if (const auto publications = by_publication(reports, stands_in); !publications.empty())
      scores.push_back(score_of(publications, stands_in));
  return scores;
}

namespace {

double deviations_needed(const Comparison& step) { return error_of(step) / range_deviations; }

bool are_comparable(const StepRange& a, const StepRange& b) {
  return a.system == b.system && same_software(a, b) && a.dtype == b.dtype &&
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
      if (one.range) runs.push_back({Seconds{one.measured}, *one.range, one.plan});
    if (runs.size() < 2) continue;
    ByOthers family{report.file, static_cast<int>(runs.size())};
    for (std::size_t i = 0; i < runs.size(); ++i) {
      std::vector<MeasuredRun> others = runs;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      const StepRange& predicted = runs[i].predicted;
      const StepByRuns found = by_runs(predicted, runs[i].plan, others);
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
    }
    if (coverage.steps == 0) continue;
    coverage.half_width /= coverage.steps;
    list.push_back(coverage);
  }
  return list;
}

std::map<StepClass, double> training_errors(const std::vector<ValidationReport>& reports) {
  std::map<StepClass, std::vector<Comparison>> by_class;
  for (const ValidationReport& report : reports)
    for (const Comparison& step : report.comparisons)
      if (step.range) by_class[step.range->errors.step_class].push_back(step);
  std::map<StepClass, double> errors;
  for (const auto& [of, steps] : by_class) errors[of] = training_error_of(steps);
  return errors;
}

namespace {

struct Residual {
  double size = 0.0;   // |ln(measured / predicted)|
  double error = 0.0;  // Half-width of its range.
};
using ByPublication = std::map<std::string, std::vector<Residual>>;

const char* name_of(ServingFigure figure) {
  if (figure == ServingFigure::ttft) return "ttft";
  return figure == ServingFigure::tpot ? "tpot" : "throughput";
}

}  // namespace

std::vector<ServingCoverage> serving_coverage_of(const std::vector<ValidationReport>& reports) {
  std::map<ServingFigure, ByPublication> figures;
  for (const ValidationReport& report : reports)
    for (const Comparison& one : report.comparisons)
      if (const auto figure = serving_figure(one.quantity); figure && one.serving_error)
        figures[*figure][one.publication].push_back({std::abs(error_of(one)), *one.serving_error});
  std::vector<ServingCoverage> list;
  for (const auto& [figure, publications] : figures) {
    ServingCoverage coverage{name_of(figure), static_cast<int>(publications.size())};
    const auto size = [](const Residual& one) { return one.size; };
    coverage.error = quantile_of_votes(publications, serving_coverage, size, nullptr);
    for (const auto& [publication, residuals] : publications) {
      const double vote = 1.0 / static_cast<double>(residuals.size() * publications.size());
      const double by_others =
          quantile_of_votes(publications, serving_coverage, size, &publication);
      if (std::isnan(by_others)) coverage.left_out_in_range = by_others;
      for (const Residual& one : residuals) {
        ++coverage.cases;
        coverage.inside += one.size <= one.error;
        coverage.in_range += one.size <= one.error ? vote : 0.0;
        coverage.left_out_in_range += one.size <= by_others ? vote : 0.0;
      }
    }
    list.push_back(coverage);
  }
  return list;
}

}  // namespace orrery
