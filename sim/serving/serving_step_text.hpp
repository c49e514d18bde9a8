#pragma once

#include <string>

#include "sim/serving/serving_step.hpp"
#include "sim/serving/token_cost.hpp"

namespace orrery {

/// One iteration of a serving engine: its parts, its bottleneck, and the memory. `cost`: that of
/// its tokens.
std::string serving_step_text(const ServingStep& step, const TokenCost& cost);

/// The same as orrery.serving/1: "step" and "memory" (docs/reference/json.md).
std::string serving_step_json(const ServingStep& step, const TokenCost& cost);

/// Returns ", speculate mtp:2@0.7 (2.40 tokens a step)", or "" if the deployment drafts nothing.
std::string speculation_words(const Deployment& plan);

/// Returns "requests of up to 1,024 tokens: some layers keep only a window" where the cache holds
/// longer requests than it has tokens, else "".
std::string longest_text(const Deployment& plan, const KvCapacity& kv);

/// Identifies a deployment: "vllm, tp 2, ep 4, weights fp8, kv fp8".
std::string deployment_text(const ServingSetup& setup);

}  // namespace orrery
