#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/serving/serving_error.hpp"

namespace orrery {

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
/// model and engine, by system and engine, and by all three (docs/SERVING-RANGES.md). At least one
/// run.
ServingByRuns serving_by_runs(ServingFigure figure, const ServingPlace& place,
                              const std::vector<MeasuredServing>& runs);

/// Of the figures that were measured.
using ServingRunsByFigure = std::map<ServingFigure, ServingByRuns>;

}  // namespace orrery
