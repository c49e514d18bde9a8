#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/cluster/dtype.hpp"
#include "sim/cluster/system.hpp"
#include "sim/core/field.hpp"
#include "sim/core/json_value.hpp"
#include "sim/model/model.hpp"
#include "sim/serving/checkpoint_formats.hpp"
#include "sim/serving/kv_tiers.hpp"
#include "sim/serving/serving_engine.hpp"
#include "sim/serving/speculation.hpp"

namespace orrery {

/// The options of a deployment that the user gives; make_deployment() has defaults for the others.
struct DeploymentRequest {
  std::optional<int> tp, pp, ep, dp, moe_tp, replicas;
  std::optional<Dtype> weights, attention, experts;
  std::optional<Dtype> kv, states;
  std::optional<bool> trtllm_gen;
  std::optional<double> state_ratio, window_ratio;
  std::optional<std::int64_t> ends_16bit;
  std::optional<std::int64_t> budget, max_seqs, max_length, block;
  std::optional<std::vector<std::int64_t>> graph_sizes;
  std::optional<double> kv_share;
  std::optional<bool> chunked, mixed, eplb, two_batch;
  std::optional<int> redundant_experts, prefill_delay, receive_interval;
  std::optional<Bytes> host_kv;
  std::optional<std::vector<KvTier>> kv_tiers;
  std::optional<KvFetching> kv_prefetch;
  std::optional<KvWriting> kv_write;
  std::optional<Speculation> speculate;
};

/// A complete, checked deployment: it runs unless memory is short, which kv_capacity() decides.
///
/// A stage of a replica has tp x dp GPUs. Attention is cut over tp ranks and copied dp times, each
/// copy with requests of its own; experts lie on the same GPUs as moe_tp x ep.
struct Deployment {
  int tp = 1, pp = 1, ep = 1, dp = 1, moe_tp = 1, replicas = 1;
  Dtype weights = Dtype::bf16;
  Dtype attention = Dtype::bf16;  ///< Format of attention's linear layers.
  Dtype experts = Dtype::bf16;
  Dtype kv = Dtype::bf16;
  Dtype states = Dtype::fp32;   ///< Of mixers that keep a state.
  bool state_pages = false;     ///< EngineStates::in_pages.
  double state_ratio = 0.0;     ///< EngineStates::ratio.
  double window_ratio = 0.0;    ///< MemoryRule::window_ratio, for compressed attention; else 0.
  std::int64_t ends_16bit = 0;  ///< So many of the first and of the last layers have 16 bits.
  std::int64_t budget = 0;      ///< Tokens of an iteration of one attention rank.
  std::int64_t max_seqs = 0;    ///< Requests of an iteration of it.
  /// Tokens of a request's prompt and answer, at most; 0: not stated.
  std::int64_t max_length = 0;
  /// Requests of steps without prompts that CUDA graphs hold, ascending: such steps compute as many
  /// as the next size, and steps with prompts have no graph. Empty: graphs of every size, with
  /// prompts too, up to IterationHost::largest_graph.
  std::vector<std::int64_t> graph_sizes;
  std::int64_t block = 0;      ///< Tokens of a KV block.
  bool frees_windows = false;  ///< MemoryRule::frees_windows.
  double kv_share = 0.0;       ///< Share of GPU memory, by the engine's MemoryRule.
  bool chunked = true;
  /// An all-to-all (DeepEP) sends tokens to the ranks that hold their experts, each expert whole on
  /// one rank; the exchange and the products behind it have kernels of their own. Otherwise all
  /// ranks hold all tokens, or the exchange stays inside an NVLink domain of few ranks.
  bool dispatches = false;
  bool trtllm_gen = false;    ///< FlashInfer's TRTLLM-gen kernels multiply the experts.
  bool eplb = false;          ///< The engine places experts by their load.
  bool two_batch = false;     ///< Halves of a batch hide each other's exchange.
  int redundant_experts = 0;  ///< Replicas of experts, in addition to the model's own.
  int prefill_delay = 0;      ///< BatchRules::prefill_delay.
  int receive_interval = 1;   ///< BatchRules::receive_interval.
  bool mixed = true;          ///< Decodes run in iterations with prompts; else prompts go first.
  Bytes host_kv;              ///< Host memory of each GPU for keys and values; 0: none.
  /// Memories behind it, nearest first; how long prompts wait for what they have; and when blocks
  /// go to the host's and to them.
  std::vector<KvTier> kv_tiers;
  KvFetching kv_prefetch;
  KvWriting kv_write = KvWriting::through;
  std::optional<Speculation> speculation;
  std::shared_ptr<const Model> drafter;  ///< The draft model; null: no model drafts.
  DeploymentRequest request;             ///< The options that the deployment completes.

  /// Layers whose weights have 16 bits, whatever the others have.
  bool is_16bit(std::int64_t layer, std::int64_t layers) const {
    return layer < ends_16bit || layer >= layers - ends_16bit;
  }
  /// Tokens of each request that a decode step computes.
  int step_tokens() const { return 1 + (speculation ? speculation->tokens : 0); }
  /// Tokens of the fullest rank of experts over the mean rank's, behind a dispatch. Without a
  /// balancer ep^0.2, which is what a router of power law 0.8 sends to the fullest of 4 to 64 ranks
  /// (1.3, 1.4, 1.6, 2.1, 2.2 by the times of SGLang's kernels of H100 against an even one's:
  /// aiconfigurator, wideep_context_moe_perf, 65,536 tokens and more). With one 1.2: DeepSeek-V3's
  /// prompts on 32 H100s take 1.18 times as long as with an even router where experts and the
  /// exchange are some nine tenths of a layer (lmsys.org/blog/2025-05-05-large-scale-ep, which has
  /// 1.49 for no balancer).
  double fullest_experts() const;
  /// Requests that a decode step without prompts computes for so many.
  std::int64_t padded(std::int64_t requests) const;
  bool has_kv_tiers() const { return host_kv > Bytes{} || !kv_tiers.empty(); }
  bool has_store() const { return !kv_tiers.empty() && kv_tiers.back().kind == TierKind::remote; }
  /// Names of the memories behind the GPU's, nearest first: "host", "nvme", "remote".
  std::vector<std::string> tier_names() const;
  std::int64_t stage_gpus() const { return std::int64_t{tp} * dp; }
  std::int64_t replica_gpus() const { return stage_gpus() * pp; }
  std::int64_t gpus() const { return replica_gpus() * replicas; }
};

/// Most ranks of experts without a balancer whose tokens are not dispatched inside a domain.
inline constexpr int most_undispatched = 8;

/// The most requests in one of the batches that take turns in a pipeline.
std::int64_t batch_limit(const ServingEngine& engine, const Deployment& plan);

/// True if the host prepares an iteration while another one runs.
bool hides_host(const Model& model, const ServingEngine& engine, const Deployment& plan);

/// "wait", "best-effort" or a time.
std::string prefetch_text(const Deployment& plan);

/// One key of a deployment, for flags, files and --help.
using DeploymentKey = Field<DeploymentRequest>;
const std::vector<DeploymentKey>& deployment_keys();

/// Sets one key from a flag's text. Errors (bad_input): unknown key, wrong value.
void set_deployment_flag(DeploymentRequest& request, const std::string& key,
                         const std::string& text);
/// Sets the keys of a JSON object in `request`.
void read_deployment(DeploymentRequest& request, const JsonValue& json);

using OptionTexts = std::vector<std::pair<std::string, std::string>>;
/// "--tp 4 --gpus 8"; "tp=4" where `at` is an option of a pool, whose GPUs follow from its degrees.
std::string options_text(const OptionTexts& options, const Place& at);

/// The formats of what is served: all of --weights if the request states them, else those in which
/// the model is published; attention, experts and the end layers as the request states them.
CheckpointFormats checkpoint_of(const Model& model, const DeploymentRequest& request);

/// Says which published formats are served because the request states no others; "": none.
std::string published_note(const Model& model, const DeploymentRequest& request);

/// One sentence for each known effect that the prediction intervals of the deployment do not cover:
/// compressed attention (docs/notes/hybrid-serving.md), tensor-parallel ranks on several nodes
/// (tt-inference-server issue 356, sglang issue 3656), and experts over many ranks, whose tables
/// were timed with an uneven router (docs/notes/serving-errors.md).
std::vector<std::string> unmeasured_notes(const System& system, const Model& model,
                                          const Deployment& plan);

/// Completes `request`: one stage, tensor parallelism over all GPUs of a replica, the formats of
/// checkpoint_of(), the engine's defaults. Errors: bad_input for contradictions; infeasible for
/// sizes that do not divide, for a format that engine or GPU lacks, and for layers that are not
/// modelled; each names the nearest feasible value.
Deployment make_deployment(const Model& model, const System& system, const ServingEngine& engine,
                           const DeploymentRequest& request, int gpus, const Place& at);

/// Reads a deployment file, orrery.deployment/1: model (a name, or all of a model), checkpoint (the
/// name of what is served), engine, system, gpus, the keys of a deployment or of "prefill" and
/// "decode", prefix_cache, router.
///
/// Returns the equivalent options of `orrery serve`, each with its text, in that order; a model
/// that the file holds is named by the file. Errors (bad_input): unknown keys, wrong values, only
/// one of two pools.
std::vector<std::pair<std::string, std::string>> read_deployment_file(const std::string& path);
/// The same for a parsed document.
std::vector<std::pair<std::string, std::string>> deployment_options_of(const JsonValue& file);

}  // namespace orrery
