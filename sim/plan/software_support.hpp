#pragma once

#include <string>
#include <vector>

#include "sim/core/json_value.hpp"
#include "sim/core/refused.hpp"
#include "sim/plan/plan.hpp"

namespace orrery {

struct PlanKey;
struct Software;

/// The values that a software has of one key of a plan; of a key without an entry it has all.
struct Support {
  const PlanKey* key = nullptr;
  std::vector<std::string> words;  ///< As a flag would say them.
  bool of_state = false;           ///< What is kept of a parameter (OptimizerState).

  bool operator==(const Support&) const = default;
  /// Whether `word` is one of them, what refines it (":core_attn+mlp") left out.
  bool has(const std::string& word) const;
};

/// Reads {"zero": {"value": [0, 1], "source": "..."}, "schedule": ...}. Errors: what is no key
/// of a plan, no values, a value that is none.
std::vector<Support> read_support(const JsonValue& json);

/// Refuses a plan that has a value which the software has not.
MaybeRefused check_support(const Software& software, const Plan& plan);

/// Whether some plan may have this value of `key`, written as a flag.
bool supports(const Software& software, const std::string& key, const std::string& value);

}  // namespace orrery
