#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/economics.hpp"
#include "sim/model/model.hpp"

namespace orrery {

/// Figures of clients whose predictions were compared with measurements.
enum class ServingFigure { ttft, tpot, throughput };

/// The figure of a measured quantity ("ttft_ms", "tpot_ms", "output_tokens_per_s",
/// "total_tokens_per_s"); none for others.
std::optional<ServingFigure> serving_figure(const std::string& quantity);

/// The |ln(measured / predicted)| that nine in ten measurements of the next publication do not
/// exceed, of means and medians; tails of TTFT were compared too rarely.
double serving_error(ServingFigure figure);
inline constexpr double serving_coverage = 0.9;

/// The range predicted x exp(-+ error), in which nine in ten measurements lie.
Range serving_range(double predicted, ServingFigure figure);

/// The |ln| of a ratio of two deployments, measured over predicted, that nine in ten pairs do not
/// exceed; `alike`: on one system and by one engine, whose errors they share.
double serving_pair_error(bool alike, const Model& model);

/// Attributes by which errors of predictions correlate.
struct ServingPlace {
  std::string engine, model, system;
};

/// A measured figure and its prediction.
struct MeasuredServing {
  std::string run;
  ServingPlace place;
  double measured = 0.0, predicted = 0.0;
};

/// The correction of a figure by measurements of others: its prediction stays as it is, and this is
/// reported with it.
struct ServingByRuns {
  int runs = 0;
  double offset = 0.0;     ///< Expected ln(measured / predicted).
  double deviation = 0.0;  ///< Half-width of the 90 % range, of ln.

  double value(double predicted) const;
  Range range(double predicted) const;
};

/// Errors ln(measured / predicted) are normal with mean 0 and have parts in common: by engine, by
/// model and engine, by system and engine, and by all three (docs/explanation/ranges.md). Requires
/// at least one run.
ServingByRuns serving_by_runs(ServingFigure figure, const ServingPlace& place,
                              const std::vector<MeasuredServing>& runs);

/// One entry for each measured figure.
using ServingRunsByFigure = std::map<ServingFigure, ServingByRuns>;

}  // namespace orrery
