#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/cluster/economics.hpp"
#include "sim/engine/timeline.hpp"
#include "sim/training/step_range.hpp"

namespace orrery {

/// One of several plans, as its result object describes it.
struct ComparedPlan {
  std::string source;  ///< What the user called it: a file, flags.
  std::string model;
  int gpus = 0;
  std::vector<std::pair<std::string, std::string>> plan;  ///< Keys and what they say.
  StepRange range;
  std::int64_t sequence = 0;  ///< Tokens.
  double tokens = 0.0;        ///< Of a step.
  double tokens_per_s_per_gpu = 0.0;
  double mfu = 0.0;
  Bytes peak, capacity;
  Engine engine = Engine::own;
  std::vector<std::pair<std::string, Seconds>> critical_path;  ///< Adds up to the step.

  Range usd_per_trillion_tokens(Range rent_usd_per_gpu_hour) const;
};

/// Reads an object of schema "orrery.result/1" (docs/OUTPUT.md). Errors: what is missing, what is
/// no such figure, and parts that do not add up to the step time: somebody changed the object.
ComparedPlan read_compared_plan(const JsonValue& result, const std::string& source);

/// Errors: plans of different models.
void require_one_model(const std::vector<ComparedPlan>& plans);

/// How much longer `other` takes than `one` for the tokens that `one` trains on in a step, and how
/// that is made up: for each part of the critical path.
struct PlanDifference {
  StepDifference step;
  std::vector<std::pair<std::string, Seconds>> critical_path;
};
PlanDifference difference(const ComparedPlan& one, const ComparedPlan& other);

}  // namespace orrery
