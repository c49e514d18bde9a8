#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/serving/pooled_serving.hpp"
#include "sim/serving/token_cost.hpp"

namespace orrery {

/// "2 x tp 4", "tp 1 dp 4 ep 4": how a pool's replicas are cut, and how many there are.
std::string pool_text(const Deployment& plan, const Model& model);
/// "vllm, prefill 2 x tp 4, decode tp 8, weights fp8, kv bf16".
std::string pools_text(const ServingSetup& prefill, const ServingSetup& decode);

/// "when the prompt is computed", "chunk by chunk", "layer by layer".
std::string kv_sending_text(KvSending sending);

/// What each pool did, and what went between them.
std::string pooled_outcome_text(const ServingRun& run);
/// Rows of the table of latencies, behind TTFT: what it is made of.
struct PoolLatency {
  std::string name;
  const LatencyHistogram& histogram;
};
std::vector<PoolLatency> pool_latencies(const TransferCounts& transfers);

/// "pools" and "transfers" of orrery.serving/1.
nlohmann::ordered_json pools_json(const ServingRun& run);
nlohmann::ordered_json transfers_json(const PooledOutcome& pools);

/// A prompt's way, alone, under the iterations of --step.
std::string lone_transfer_text(const LoneTransfer& transfer, KvSending sending);
nlohmann::ordered_json lone_transfer_json(const LoneTransfer& transfer, KvSending sending);

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
