#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/serving/pooled_serving.hpp"
#include "sim/serving/token_cost.hpp"

namespace orrery {

/// One iteration of each pool: what is there to prefill, what decodes, and how prompts get from the
/// one to the other.
struct PooledStep {
  std::optional<ServingStep> prefill, decode;
  std::vector<LoneTransfer> transfers;  ///< Of each prompt.
  KvSending sending = KvSending::whole;
  TokenCost cost;  ///< Of the decode pool's tokens.
};
std::string pooled_step_text(const PooledStep& step);
/// orrery.serving/1 with "pools", each with its "step", and "transfers".
std::string pooled_step_json(const PooledStep& step);

}  // namespace orrery
