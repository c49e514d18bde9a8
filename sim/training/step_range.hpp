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
/// The range of a training step is that of published steps: their half-width, a vote a publication,
/// which prices that are less known than theirs make wider (PublishedSteps::half_width). Without
/// them, as for a single kernel, it is that of its prices.
struct StepRange {
  Seconds step;
  TimeByPrice path;  ///< Adds up to `step`.
  PriceErrors errors;
  /// Identify what was modelled: two steps share the errors of equal parts.
  std::string gpu, system, software;
  Dtype dtype = Dtype::bf16;
  bool stands_in = false;  ///< Another software runs, for which `software` stands in.

  /// sigma_step^2 / step^2 is price_variance() + phi^2 training_weight().
  double price_variance() const;
  double training_weight() const;
  Seconds deviation() const;  ///< sigma_step
  double half_width() const;  ///< Of ln(true / predicted).
  Seconds low() const;
  Seconds high() const;
  /// The range with all times multiplied by `factor`.
  StepRange scaled(double factor) const;
};

/// True if one software ran both: one for which another stands in is not that other one.
bool same_software(const StepRange& one, const StepRange& other);

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
  std::string plan;  ///< plan_of_a_replica()
};

/// Posterior of a step given other measured runs, reported next to its unchanged prediction.
struct StepByRuns {
  int runs = 0;
  int same_plan = 0;    ///< Those of them with the step's own plan.
  double offset = 0.0;  ///< Expected ln(measured / predicted).
  double half_width = 0.0;

  Seconds step(const StepRange& predicted) const;
  Seconds low(const StepRange& predicted) const;
  Seconds high(const StepRange& predicted) const;
};

/// Conditions a step on measured runs (docs/explanation/ranges.md). The error of a step has three
/// independent normal parts: one that all runs of its software share, one that all runs of its plan
/// share, and one that it has for itself: the same plan on another number of GPUs has a new one.
/// With the covariances C between runs, c with the step, and x = ln(measured / predicted),
///
///     offset = c' C^-1 x,     variance = v - c' C^-1 c
///
/// and the half-width is at least that of the same plan, as further runs of it do not tell more.
/// `plan`: the step's plan_of_a_replica(). At least one run is required; all have published steps.
StepByRuns by_runs(const StepRange& step, const std::string& plan,
                   const std::vector<MeasuredRun>& runs);

}  // namespace orrery
