#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/cluster/economics.hpp"
#include "sim/serving/serving_step.hpp"

namespace orrery {

/// The cost of an output token at the rate of all GPUs. Unknown if a price is.
struct TokenCost {
  Range usd_per_million;  ///< Rent of the GPUs.
  Range joules;           ///< Energy of the servers and the site.
};
inline TokenCost token_cost(double tokens_per_s, double gpus, const Economics& economics) {
  if (!(tokens_per_s > 0.0)) return {};
  const double gpu_seconds = gpus / tokens_per_s;
  return {economics.rent_usd_per_gpu_hour * (gpu_seconds / 3600.0 * 1e6),
          economics.server_watts_per_gpu * economics.pue * gpu_seconds};
}

/// Returns "$0.53 .. 1.47 a million output tokens, 0.58 .. 1.45 J an output token" and the end of
/// the line, without what is unknown.
std::string token_cost_text(const TokenCost& cost);
/// Keys "usd_per_million_output_tokens", "joules_per_output_token": "low" and "high", or null.
nlohmann::ordered_json token_cost_json(const TokenCost& cost);

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
