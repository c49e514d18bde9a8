#pragma once

#include <vector>

#include "sim/training/step_range.hpp"

namespace orrery {

/// A run that somebody measured, and what is predicted for it.
struct MeasuredRun {
  Seconds measured;
  StepRange predicted;
};

/// What is known of a step after other runs were measured: its prediction stays as it is, and this
/// stands beside it.
struct StepByRuns {
  int runs = 0;
  double offset = 0.0;     ///< Expected ln(measured / predicted).
  double deviation = 0.0;  ///< Its standard deviation.

  Seconds step(const StepRange& predicted) const;
  Seconds low(const StepRange& predicted) const;
  Seconds high(const StepRange& predicted) const;
};

/// They spend the same time on each kind of kernel: they differ in traffic and order alone.
bool same_kernels(const StepRange& one, const StepRange& other);

/// The errors of two steps, as far as they are the same ones: the covariance of their logarithms by
/// the model of StepRange. Prices of a kind and basis that both pay, and what training adds on the
/// same software.
double common_variance(const StepRange& one, const StepRange& other);

/// The errors of StepRange's model are normal and partly common to all runs; what was measured of
/// some says something of the others (docs/RANGES.md). With the covariances C between runs, c with
/// the step, and x = ln(measured / predicted),
///
///     offset = c' (C + N)^-1 x,     variance = v - c' (C + N)^-1 c
///
/// N: what one run has for itself, its shapes (PriceErrors::own) and the scatter of repeated runs.
/// At least one run.
StepByRuns by_runs(const StepRange& step, const std::vector<MeasuredRun>& runs);

}  // namespace orrery
