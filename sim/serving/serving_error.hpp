#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/economics.hpp"
#include "sim/model/model.hpp"

namespace orrery {

/// What clients see, as far as predictions of it were compared with measurements.
enum class ServingFigure { ttft, tpot, throughput };

/// Of a measured quantity ("ttft_ms", "tpot_ms", "output_tokens_per_s", "total_tokens_per_s"); none
/// of others.
std::optional<ServingFigure> serving_figure(const std::string& quantity);

/// |ln(measured / predicted)| that nine in ten published measurements do not exceed. Means and
/// medians; tails of TTFT were compared too rarely.
double serving_error(ServingFigure figure, const Model& model);
inline constexpr double serving_coverage = 0.9;

/// predicted x exp(-+ error): where nine in ten measurements lie.
Range serving_range(double predicted, ServingFigure figure, const Model& model);

/// |ln| of how much more one deployment makes than another, measured over predicted, that nine in
/// ten pairs do not exceed; `alike`: on one system and by one engine, whose errors they share.
double serving_pair_error(bool alike, const Model& model);

/// What predictions of serving have their errors by.
struct ServingPlace {
  std::string engine, model, system;
};

/// A figure that somebody measured, and what was predicted for it.
struct MeasuredServing {
  std::string run;
  ServingPlace place;
  double measured = 0.0, predicted = 0.0;
};

/// What is known of a figure after others were measured: its prediction stays as it is, and this
/// stands beside it.
struct ServingByRuns {
  int runs = 0;
  double offset = 0.0;     ///< Expected ln(measured / predicted).
  double deviation = 0.0;  ///< Half the width of the range in which nine in ten should lie, of ln.

  double value(double predicted) const;
  Range range(double predicted) const;
};

/// Errors ln(measured / predicted) are normal with mean 0 and have parts in common: by engine, by
/// model and engine, by system and engine, and by all three (docs/explanation/ranges.md). At least
/// one run.
ServingByRuns serving_by_runs(ServingFigure figure, const ServingPlace& place,
                              const std::vector<MeasuredServing>& runs);

/// Of the figures that were measured.
using ServingRunsByFigure = std::map<ServingFigure, ServingByRuns>;

}  // namespace orrery
