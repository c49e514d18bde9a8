#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/validation/validate.hpp"

namespace orrery {

/// PublishedSteps::described and `prices` of the steps in `reports` whose software is described,
/// and the numbers of publications and steps. Each publication has one vote, which its steps share.
/// The other constants are those of the steps' ranges. `left_out`: a publication that does not
/// count. Null where no publication counts.
std::optional<PublishedSteps> published_steps(const std::vector<ValidationReport>& reports,
                                              const std::string& left_out = {});

/// How good ranges are, a vote a publication: of steps whose software is described, or for which
/// another stands in.
struct RangeScore {
  bool stands_in = false;
  int publications = 0, steps = 0;
  /// Means over publications: the half-width of ln(measured / predicted); the share of steps in
  /// their range; the interval score (high - low + 20 times the distance of a measurement outside,
  /// Winkler, JASA 1972, for 90 %), which a range gains from being narrow and from holding.
  struct Means {
    double half_width = 0.0, in_range = 0.0, score = 0.0;
  };
  Means as_printed{};
  /// Each publication in the half-width that all other publications give. Where another software
  /// stands in, the half-width is a constant, and the means are those as printed.
  Means left_out{};
  /// With half-widths of 0.20 (described) and 0.40 (another stands in) for every step, as a
  /// reference.
  Means fixed{};
  /// After one measured step of the same plan, over all pairs of such steps of a publication.
  int pair_publications = 0, pair_steps = 0;
  Means by_own_step{};
};
std::vector<RangeScore> range_scores(const std::vector<ValidationReport>& reports);

/// The training error with which nine in ten measured steps lie in their ranges: of each
/// step the error phi that would just reach it,
///
///     phi^2 = ((ln(measured / predicted) / 1.645)^2 - price_variance) / training_weight,  or 0,
///
/// and of those the quantile at rank ceil(0.9 (n + 1)): so a further step of the same kind would be
/// covered with that probability, whatever the errors' distribution (split conformal prediction:
/// Lei, G'Sell, Rinaldo, Tibshirani, Wasserman, JASA 2018, section 2.2). Fewer than nine steps
/// support no such quantile: NaN.
double training_error_of(const std::vector<Comparison>& steps);

/// Published steps of a family that lie in their ranges.
struct Coverage {
  std::string family;  ///< The file.
  int steps = 0;
  int inside = 0;           ///< Count with the ranges as they are.
  double half_width = 0.0;  ///< Mean of (high - low) / 2 / step.
  /// Pairs of steps without experts on one system, software and number format, and those of them
  /// that differ as the range of the difference of their logarithms predicts.
  int pairs = 0;
  int pairs_inside = 0;
};
std::vector<Coverage> coverage_of(const std::vector<ValidationReport>& reports);

/// Errors of each step of a family when its other steps are taken as a user's own runs (by_runs).
struct ByOthers {
  std::string family;  ///< The file.
  int steps = 0;
  int inside = 0;
  double mean_abs_error = 0.0;
  double half_width = 0.0;  ///< Mean of (high - low) / 2 / predicted.
};
/// Covers families of two or more steps.
std::vector<ByOthers> predicted_by_others(const std::vector<ValidationReport>& reports);

/// training_error_of all steps in `reports`, by their class.
std::map<StepClass, double> training_errors(const std::vector<ValidationReport>& reports);

/// Published measurements of serving that lie in their ranges (serving_error.hpp), for one figure,
/// a vote a publication.
struct ServingCoverage {
  std::string figure;  ///< "ttft", "tpot", "throughput"
  int publications = 0, cases = 0;
  int inside = 0;         ///< Cases in their range.
  double in_range = 0.0;  ///< Share of the votes in their range.
  double error = 0.0;     ///< The half-width that holds nine in ten votes.
  /// Share of the votes in the range that all other publications give; NaN for one publication.
  double left_out_in_range = 0.0;
};
std::vector<ServingCoverage> serving_coverage_of(const std::vector<ValidationReport>& reports);

}  // namespace orrery
