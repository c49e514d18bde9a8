#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/cluster/economics.hpp"
#include "sim/engine/simulation.hpp"
#include "sim/reliability/training_run.hpp"
#include "sim/training/step_range.hpp"

namespace orrery {

/// One of several plans, as its result object describes it.
struct ComparedPlan {
  std::string source;  ///< The user's name of it: a file, flags.
  std::string model;
  int gpus = 0;
  std::vector<std::pair<std::string, std::string>> plan;  ///< Keys and what they say.
  StepRange range;
  std::int64_t sequence = 0;  ///< Tokens.
  double tokens = 0.0;        ///< One step's.
  double tokens_per_s_per_gpu = 0.0;
  double mfu = 0.0;
  Bytes peak, capacity;
  Simulator simulator = Simulator::own;
  std::vector<std::pair<std::string, Seconds>> critical_path;  ///< Adds up to the step.

  Range usd_per_trillion_tokens(Range rent_usd_per_gpu_hour) const;
};

/// Reads an object of schema "orrery.result/1" (docs/reference/output.md). Errors: missing keys,
/// invalid figures, and parts that do not add up to the step time because the object was edited.
ComparedPlan read_compared_plan(const JsonValue& result, const std::string& source);

/// Errors: plans of different models.
void require_one_model(const std::vector<ComparedPlan>& plans);

/// Additional time that `other` takes for the tokens that `one` trains on in a step, and its
/// composition: for each part of the critical path.
struct PlanDifference {
  StepDifference step;
  std::vector<std::pair<std::string, Seconds>> critical_path;
};
PlanDifference difference(const ComparedPlan& one, const ComparedPlan& other);

/// The whole run of one of several plans.
struct ComparedRun {
  const ComparedPlan* plan = nullptr;
  TrainingRun run;  ///< All runs have the same tokens, replicates and seed.
};

/// Additional days that `other` takes, replicate by replicate under the same failures, with the
/// uncertainty of both step times. Failures and step times are independent, and days grow with the
/// step, so that on either side of the typical value
///
///     half^2 = (half of what failures sample)^2 + (1.645 sigma of StepDifference, over the run)^2
struct RunDifference {
  ChanceRange chance;  ///< Failures alone.
  double steps = 0.0;  ///< sigma of the step times' difference, in days of the runs.

  double low() const {
    return chance.typical() - std::hypot(chance.typical() - chance.low, range_deviations * steps);
  }
  double high() const {
    return chance.typical() + std::hypot(chance.high - chance.typical(), range_deviations * steps);
  }
  /// Zero is within the range: the difference is not significant.
  bool is_tie() const { return low() <= 0.0 && high() >= 0.0; }
};
RunDifference difference(const ComparedRun& one, const ComparedRun& other);

}  // namespace orrery
