#pragma once

#include <string>
#include <vector>

#include "sim/layers/pass_cost.hpp"
#include "sim/measurements/price_errors.hpp"

namespace orrery {

/// How often a measured step lies in its range.
inline constexpr double range_coverage = 0.9;
/// Half of such a range in standard deviations of a normal distribution.
inline constexpr double range_deviations = 1.645;

/// Where a step time lies in truth, and what that was worked out from (docs/explanation/ranges.md
/// has the model and its derivation).
///
/// Prices of one kind and basis have one common error e, ln(true / price), of standard deviation
/// sigma; all prices of a kind have one more, f, of standard deviation phi, which training adds;
/// different errors are independent. With t the times of the deciding path by price,
///
///     sigma_step^2 = sum over kind, basis of (t sigma)^2 + sum over kinds of (t_kind phi)^2
///     range = step exp(-+ 1.645 sigma_step / step)
///
/// Where enough steps like it were published, of the same software or else of any, the range is
/// theirs: with their offset o, the limits l and h between which nine in ten of their
/// ln(measured / predicted) lie, and w = max(1, P / P') by the part P of sigma_step / step that
/// prices account for and what is usual for them,
///
///     range = step exp(o + w (l - o)) .. step exp(o + w (h - o)), and never without `step`
struct StepRange {
  Seconds step;
  TimeByPrice path;  ///< Adds up to `step`.
  PriceErrors errors;
  /// Whose prices: two steps have an error in common where what was priced is the same.
  std::string gpu, system, software;
  Dtype dtype = Dtype::bf16;

  /// sigma_step^2 / step^2 is price_variance() + phi^2 training_weight().
  double price_variance() const;
  double training_weight() const;
  Seconds deviation() const;  ///< sigma_step
  Seconds low() const;
  Seconds high() const;
  /// As if each second of it were `factor` seconds.
  StepRange scaled(double factor) const;
};

/// How much longer `other` takes than `one`, as far as that is known: errors that both have in
/// common move both, and matter only as far as the steps consist of different things. Kernels share
/// theirs where GPU and dtype are the same, NVLink's where the GPU is, the network's where the
/// system is, those of training where the software is. Shapes of one kind have errors of their own
/// beside the common one, which a step's range takes as common: steps that do not run the same
/// kernels add PriceErrors::own each. `same_plan`: what differs is the cluster (a throttled GPU, a
/// slower network), so that on one kind of GPU the kernels are the same however long they take.
struct StepDifference {
  Seconds mean;
  Seconds deviation;

  Seconds low() const { return mean - range_deviations * deviation; }
  Seconds high() const { return mean + range_deviations * deviation; }
  /// Zero is within the range: which of both is faster cannot be told.
  bool is_tie() const { return low() <= Seconds{} && high() >= Seconds{}; }
};
StepDifference difference(const StepRange& one, const StepRange& other, bool same_plan = false);

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
/// some says something of the others (docs/explanation/ranges.md). With the covariances C between
/// runs, c with the step, and x = ln(measured / predicted),
///
///     offset = c' (C + N)^-1 x,     variance = v - c' (C + N)^-1 c
///
/// N: what one run has for itself, its shapes (PriceErrors::own) and the scatter of repeated runs.
/// At least one run.
StepByRuns by_runs(const StepRange& step, const std::vector<MeasuredRun>& runs);

}  // namespace orrery
