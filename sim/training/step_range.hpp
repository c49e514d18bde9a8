#pragma once

#include <string>
#include <vector>

#include "sim/layers/pass_cost.hpp"
#include "sim/measurements/price_errors.hpp"

namespace orrery {

/// Prediction interval of a step time, with its inputs (docs/explanation/ranges.md has the model
/// and its derivation).
///
/// Costs of one kind and provenance have one common error e, ln(true / predicted), of standard
/// deviation sigma; all costs of a kind have one more, f, of standard deviation phi, which training
/// adds; different errors are independent. With t the times of the critical path by cost,
///
///     sigma_step^2 = sum over kind, basis of (t sigma)^2 + sum over kinds of (t_kind phi)^2
///     range = step exp(-+ 1.645 sigma_step / step)
///
/// If enough similar steps were published, of the same software or else of any, the range is that
/// of their errors: with their offset o, the limits l and h of 90 % of their ln(measured /
/// predicted), and w = max(1, P / P') by the part P of sigma_step / step due to the cost model and
/// its usual value P' in the published steps,
///
///     range = step exp(o + w (l - o)) .. step exp(o + w (h - o)), and never without `step`
struct StepRange {
  Seconds step;
  TimeByPrice path;  ///< Adds up to `step`.
  PriceErrors errors;
  /// Identify what was modelled: two steps share the errors of equal parts.
  std::string gpu, system, software;
  Dtype dtype = Dtype::bf16;

  /// sigma_step^2 / step^2 is price_variance() + phi^2 training_weight().
  double price_variance() const;
  double training_weight() const;
  Seconds deviation() const;  ///< sigma_step
  Seconds low() const;
  Seconds high() const;
  /// The range with all times multiplied by `factor`.
  StepRange scaled(double factor) const;
};

/// Difference `other` - `one` with its uncertainty: errors that both steps have in common matter
/// only as far as the steps consist of different parts. Kernels share errors if GPU and dtype are
/// the same, NVLink if the GPU is, the network if the system is, training if the software is.
/// Shapes of one kind also have errors of their own, which a step's range takes as common: steps
/// with different kernels add PriceErrors::own each. `same_plan`: only the cluster differs (a
/// throttled GPU, a slower network), so that one kind of GPU runs the same kernels, whatever their
/// times.
struct StepDifference {
  Seconds mean;
  Seconds deviation;

  Seconds low() const { return mean - range_deviations * deviation; }
  Seconds high() const { return mean + range_deviations * deviation; }
  /// Zero is within the range: the difference is not significant.
  bool is_tie() const { return low() <= Seconds{} && high() >= Seconds{}; }
};
StepDifference difference(const StepRange& one, const StepRange& other, bool same_plan = false);

/// A measured run, and its prediction.
struct MeasuredRun {
  Seconds measured;
  StepRange predicted;
};

/// Posterior of a step given other measured runs, reported next to its unchanged prediction.
struct StepByRuns {
  int runs = 0;
  double offset = 0.0;     ///< Expected ln(measured / predicted).
  double deviation = 0.0;  ///< Its standard deviation.

  Seconds step(const StepRange& predicted) const;
  Seconds low(const StepRange& predicted) const;
  Seconds high(const StepRange& predicted) const;
};

/// True if both spend the same time on each kind of kernel and differ only in traffic and order.
bool same_kernels(const StepRange& one, const StepRange& other);

/// Covariance of two steps' logarithms by the model of StepRange: common errors of a kind and
/// provenance, and what training adds on the same software.
double common_variance(const StepRange& one, const StepRange& other);

/// Conditions a step on measured runs: the errors of StepRange's model are normal and partly common
/// to all runs (docs/explanation/ranges.md). With the covariances C between runs, c with the step,
/// and x = ln(measured / predicted),
///
///     offset = c' (C + N)^-1 x,     variance = v - c' (C + N)^-1 c
///
/// N: independent errors of a run, those of its shapes (PriceErrors::own) and the scatter of
/// repeated runs. At least one run is required.
StepByRuns by_runs(const StepRange& step, const std::vector<MeasuredRun>& runs);

}  // namespace orrery
