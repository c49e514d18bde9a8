#pragma once

#include "sim/core/json_value.hpp"
#include "sim/core/units.hpp"

namespace orrery {

/// Share of measurements that lie in their range.
inline constexpr double range_coverage = 0.9;
/// Half-width of a range that nine in ten measurements lie in, in standard deviations of a normal
/// distribution.
inline constexpr double range_deviations = 1.645;

/// How far steps that others measured were from their predictions, a vote a publication, and what
/// follows for the next one. Half-widths are of ln(measured / predicted); nine in ten steps lie
/// within them (docs/explanation/ranges.md, which also has the sources).
struct PublishedSteps {
  int publications = 0, steps = 0;
  double described = 0.0;  ///< Half-width where the software that runs has a file of its own.
  double stands_in = 0.0;  ///< Half-width where another software's file stands in for it.
  /// Time by which measured steps of any length may exceed their predictions.
  Seconds missing;
  /// Half-width of a step after one step of the same plan was measured.
  double same_plan = 0.0;
  /// Share of the variance that all steps of a publication have in common, where the software is
  /// described.
  double of_publication = 0.0;
  /// Standard deviation due to prices that 92 % of the votes do not exceed.
  double prices = 0.0;

  /// Half-width of a step whose prices explain a standard deviation of `prices_deviation`:
  ///
  ///     half^2 = h^2 + share_missing^2 + less_known^2
  double half_width(Seconds step, bool another_runs, double prices_deviation) const;

  /// missing / (step + missing)
  double share_missing(Seconds step) const;
  /// Half-width that a standard deviation of prices adds beyond that of published steps; 0 for a
  /// smaller one.
  double less_known(double prices_deviation) const;

  bool operator==(const PublishedSteps&) const = default;
};

/// Both files of calibration/data: what validation finds, and the constants in "ranges" of
/// price_errors.json. Errors: missing or unknown keys, values out of range.
PublishedSteps parse_published_steps(const JsonValue& found, const JsonValue& price_errors);
PublishedSteps read_published_steps();

/// Reads step_time_range.published of a result (docs/reference/json.md).
PublishedSteps parse_summary(const JsonValue& json);

}  // namespace orrery
