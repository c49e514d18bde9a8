#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/validation/validate.hpp"

namespace orrery {

/// Step times that have a range, of all reports but `left_out`, which is one of them or null.
std::vector<Comparison> steps_with_ranges(const std::vector<ValidationReport>& reports,
                                          const ValidationReport* left_out = nullptr);

/// Errors of the steps of each software and class with nine or more of them, and of those of any
/// software (docs/explanation/ranges.md).
std::vector<PublishedClass> published_classes(const std::vector<ValidationReport>& reports,
                                              const ValidationReport* left_out = nullptr);

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
  /// With the ranges of any software's steps of the class (of_any_software), of all other families.
  int left_out_steps = 0;  ///< Steps with enough similar others.
  int left_out_inside = 0;
  double left_out_half_width = 0.0;
  /// Pairs of steps without experts on one system, software and number format, and those of them
  /// that differ as the range of the difference of their logarithms predicts.
  int pairs = 0;
  int pairs_inside = 0;
};
std::vector<Coverage> coverage_of(const std::vector<ValidationReport>& reports);

/// Errors of each step of a family when its other steps calibrate the prediction (own_runs.hpp), as
/// for a user who measured some runs of a machine.
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

/// Published measurements of serving that lie in their ranges (serving_error.hpp), for one figure
/// and class of models.
struct ServingCoverage {
  std::string figure;    ///< "ttft", "tpot", "throughput"
  bool experts = false;  ///< MoE models, distinguished for TPOT only.
  int cases = 0, inside = 0;
  /// The error that just covers nine in ten of them (split conformal: training_error_of()); NaN for
  /// fewer than nine.
  double error = 0.0;
  /// Cases that lie in a range whose error all other files give, where these have nine.
  int left_out_cases = 0, left_out_inside = 0;
};
std::vector<ServingCoverage> serving_coverage_of(const std::vector<ValidationReport>& reports);

}  // namespace orrery
