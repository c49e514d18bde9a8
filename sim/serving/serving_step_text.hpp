#pragma once

#include <string>

#include "sim/serving/serving_step.hpp"
#include "sim/serving/token_cost.hpp"

namespace orrery {

/// One iteration of a serving engine: where its time goes, what limits it, and the memory.
/// `cost`: of its tokens.
std::string serving_step_text(const ServingStep& step, const TokenCost& cost);

/// The same as orrery.serving/1: "step" and "memory" (docs/reference/json.md).
std::string serving_step_json(const ServingStep& step, const TokenCost& cost);

/// ", speculate mtp:2@0.7 (2.40 tokens a step)"; "" of a deployment that drafts nothing.
std::string speculation_words(const Deployment& plan);

/// "vllm, tp 2, ep 4, weights fp8, kv fp8": what tells a deployment from another.
std::string deployment_text(const ServingSetup& setup);

}  // namespace orrery
