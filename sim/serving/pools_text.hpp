#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/serving/pooled_serving.hpp"
#include "sim/serving/serving_step_text.hpp"

namespace orrery {

/// Parallelism and number of a pool's replicas: "2 x tp 4", "tp 1 dp 4 ep 4".
std::string pool_text(const Deployment& plan, const Model& model);
/// Both pools: "vllm, prefill 2 x tp 4, decode tp 8, weights fp8, kv bf16".
std::string pools_text(const ServingSetup& prefill, const ServingSetup& decode);

/// Returns "when the prompt is computed", "chunk by chunk" or "layer by layer".
std::string kv_sending_text(KvSending sending);

/// Results of each pool, and of the transfers between them.
std::string pooled_outcome_text(const ServingRun& run);
/// Rows of the table of latencies, behind TTFT: its components.
struct PoolLatency {
  std::string name;
  const LatencyHistogram& histogram;
};
std::vector<PoolLatency> pool_latencies(const TransferCounts& transfers);

/// "pools" and "transfers" of orrery.serving/1.
nlohmann::ordered_json pools_json(const ServingRun& run);
nlohmann::ordered_json transfers_json(const PooledOutcome& pools);

/// The isolated transfer of a prompt, printed under the iterations of --step.
std::string isolated_transfer_text(const IsolatedTransfer& transfer, KvSending sending);
nlohmann::ordered_json isolated_transfer_json(const IsolatedTransfer& transfer, KvSending sending);

/// One iteration of each pool: the prompts, the decodes, and the transfers of prompts from one to
/// the other.
struct PooledStep {
  std::optional<ServingStep> prefill, decode;
  std::vector<IsolatedTransfer> transfers;  ///< One for each prompt.
  KvSending sending = KvSending::whole;
  TokenCost cost;  ///< Cost of the decode pool's tokens.
};
std::string pooled_step_text(const PooledStep& step);
/// orrery.serving/1 with "pools", each with its "step", and "transfers".
std::string pooled_step_json(const PooledStep& step);

}  // namespace orrery
