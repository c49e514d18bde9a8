#include "sim/serving/serving_error.hpp"

#include <cassert>
#include <cmath>

#include "sim/core/statistics.hpp"

namespace orrery {
namespace {

// Half-widths that hold nine in ten votes of publications, which their cases share (as for training
// steps, sim/validation/coverage.cpp), of tests/validation/inference, November 2026. `orrery
// validate --json FILE...` prints them as serving_errors, with the votes of publications left out
// that lie in the range of all others (docs/explanation/ranges.md).
constexpr double tpot_error = 0.273;        // 1,350 cases of 13 publications
constexpr double ttft_error = 1.248;        // 1,380 of 14
constexpr double throughput_error = 0.374;  // 1,002 of 11

// 90 % quantiles of pairs of cases of one model in one file that differ in their deployment, by
// TPOT: 8,909 dense ones of one system and engine and 12,001 of several, 9,151 and 13,879 with
// experts (calibration/serving_covariances.py).
constexpr double alike_dense = 0.203, alike_experts = 0.311;
constexpr double other_dense = 0.232, other_experts = 0.367;

}  // namespace

std::optional<ServingFigure> serving_figure(const std::string& quantity) {
  if (quantity == "ttft_ms") return ServingFigure::ttft;
  if (quantity == "tpot_ms") return ServingFigure::tpot;
  if (quantity == "output_tokens_per_s" || quantity == "total_tokens_per_s")
    return ServingFigure::throughput;
  return std::nullopt;
}

double serving_error(ServingFigure figure) {
  if (figure == ServingFigure::tpot) return tpot_error;
  return figure == ServingFigure::ttft ? ttft_error : throughput_error;
}

double serving_pair_error(bool alike, const Model& model) {
  if (model.experts) return alike ? alike_experts : other_experts;
  return alike ? alike_dense : other_dense;
}

Range serving_range(double predicted, ServingFigure figure) {
  const double factor = std::exp(serving_error(figure));
  return {predicted / factor, predicted * factor};
}

namespace {

// Variances that runs share, and the quantile of |error| over its deviation that nine in ten of
// further runs do not exceed after one of their engine, model and system.
struct Variances {
  double engine, model, system, all, own, quantile;
};

// Inferred on the cases of tests/validation/inference, November 2026: 1,190, 1,190 and 898 runs of
// 42, 42 and 54 combinations of engine, model and system, by calibration/serving_covariances.py.
constexpr Variances ttft{0.0885, 0.2086, 0.0000, 0.0183, 0.2155, 1.59};
constexpr Variances tpot{0.0000, 0.0024, 0.0001, 0.0046, 0.0099, 1.71};
constexpr Variances throughput{0.0000, 0.0083, 0.0067, 0.0104, 0.0318, 1.31};

const Variances& variances_of(ServingFigure figure) {
  if (figure == ServingFigure::ttft) return ttft;
  return figure == ServingFigure::tpot ? tpot : throughput;
}

double covariance(const Variances& of, const ServingPlace& a, const ServingPlace& b) {
  if (a.engine != b.engine) return 0.0;
  const bool model = a.model == b.model, system = a.system == b.system;
  return of.engine + (model ? of.model : 0.0) + (system ? of.system : 0.0) +
         (model && system ? of.all : 0.0);
}

}  // namespace

double ServingByRuns::value(double predicted) const { return predicted * std::exp(offset); }

Range ServingByRuns::range(double predicted) const {
  return {predicted * std::exp(offset - deviation), predicted * std::exp(offset + deviation)};
}

ServingByRuns serving_by_runs(ServingFigure figure, const ServingPlace& place,
                              const std::vector<MeasuredServing>& runs) {
  assert(!runs.empty());
  const Variances& of = variances_of(figure);
  std::vector<const ServingPlace*> places;
  std::vector<double> errors;
  for (const MeasuredServing& run : runs) {
    places.push_back(&run.place);
    errors.push_back(std::log(run.measured / run.predicted));
  }
  places.push_back(&place);
  std::vector<std::vector<double>> all(places.size(), std::vector<double>(places.size()));
  for (std::size_t i = 0; i < places.size(); ++i)
    for (std::size_t k = 0; k < places.size(); ++k)
      all[i][k] = covariance(of, *places[i], *places[k]) + (i == k ? of.own : 0.0);
  const ConditionalNormal after = conditional_normal(std::move(all), errors);
  return {static_cast<int>(runs.size()), after.mean, of.quantile * std::sqrt(after.variance)};
}

}  // namespace orrery
