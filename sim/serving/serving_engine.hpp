#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/dtype.hpp"
#include "sim/core/enum_words.hpp"
#include "sim/core/json_value.hpp"
#include "sim/serving/scheduler.hpp"

namespace orrery {

/// Mode of loading what a prompt needs from the host's memory.
enum class HostKvLoading {
  apart,   ///< Overlapped with others; the prompt begins when all of it is there.
  layers,  ///< Each layer's overlapped with the computation of the one before.
  before   ///< Before the iteration in which the prompt begins, which waits for it.
};
template <>
inline const std::vector<std::string> enum_words<HostKvLoading>{"apart", "layers", "before"};

/// How long a prompt waits for what a memory behind the host's has of it.
enum class KvPrefetch {
  wait,         ///< For all of it.
  best_effort,  ///< Not at all: what has come when it is first scheduled counts.
  timeout       ///< For so long after its arrival.
};
template <>
inline const std::vector<std::string> enum_words<KvPrefetch>{"wait", "best-effort", "timeout"};
struct KvFetching {
  KvPrefetch policy = KvPrefetch::wait;
  /// Of KvPrefetch::timeout: the time for any prompt, and that for each token which it waits for.
  Seconds limit, limit_per_token;

  bool operator==(const KvFetching&) const = default;
};

/// When blocks go to the memories behind the GPU's.
enum class KvWriting {
  through,  ///< To all of them when they are computed, so that farther ones hold what nearer do.
  back      ///< To the next one when their space is needed, and back as a whole.
};
template <>
inline const std::vector<std::string> enum_words<KvWriting>{"through", "back"};

/// An engine's store of keys and values of prompts in the host's memory
/// (docs/explanation/serving.md).
struct EngineHostKv {
  HostKvLoading loading = HostKvLoading::before;
  KvWriting writing = KvWriting::back;
  /// Reads of memories behind the host's begin when a request arrives; else at its admission.
  bool fetches_at_arrival = false;
  KvPrefetch prefetch = KvPrefetch::wait;
  Seconds prefetch_limit, prefetch_limit_per_token;  ///< KvFetching
};

/// Mode of sending keys and values of a prompt to the pool that decodes.
enum class KvSending {
  whole,   ///< All of them when the prompt is computed.
  chunks,  ///< Those of each part of a prompt when it is, overlapped with the next part.
  layers   ///< Those of each layer when it is computed.
};
template <>
inline const std::vector<std::string> enum_words<KvSending>{"whole", "chunks", "layers"};

/// The host's work for an iteration, and the GPU's wait between two.
struct IterationHost {
  bool hidden = true;  ///< The next iteration is prepared while one runs: max(), else a sum.
  /// The same if copies of attention share experts. False: they agree on each iteration first.
  bool hidden_with_copies = true;
  Seconds base, per_layer, per_request;
  Seconds gap, gap_per_request;
  Seconds eager_layer;             ///< Launches of one layer, kernel by kernel.
  Seconds eager_states;            ///< The same of a mixer with a state, in addition.
  Seconds eager_state_space;       ///< The same of a state space, in addition to both.
  std::int64_t largest_graph = 0;  ///< Tokens; beyond, and at 0 always, layers are eager.
};

/// Kernels of a layer that no table holds: norms, rotary embedding, cache write, activation,
/// quantisation.
struct SmallKernels {
  double count = 0.0;  ///< Kernels of a layer.
  Seconds each;        ///< Time without its traffic.
  /// Tensors between two products are read and written once. Else each kernel reads and writes
  /// tensors of its own.
  bool fused = true;
  /// Formats of weights for which separate kernels quantise the inputs of products.
  std::vector<Dtype> quantises_apart;
  Seconds router;    ///< Time of a layer with experts.
  Seconds states;    ///< Time of a mixer with a state, in addition: splits, gates, norms.
  Seconds sampling;  ///< Time of an iteration, without the head's product.
  Seconds sampling_per_request;
};

/// The share of a GPU's memory that becomes KV cache.
struct MemoryRule {
  bool share_of_rest = false;  ///< `share` of what weights leave; else of all, less the weights.
  double share = 0.0;
  Bytes reserve;           ///< Contexts, graphs, buffers of one isolated rank.
  Bytes reserve_parallel;  ///< The same where ranks work together.
  /// Memory of the largest iteration: logits of all its requests at so many bytes for each word of
  /// the vocabulary, or a layer's own tensors, whichever is larger. 0: in `reserve`.
  double logit_bytes = 0.0;
  /// It starts only if the cache holds one request of the deployment's max_length. Else it limits
  /// requests to what fits.
  bool holds_max_length = false;
  /// Layers with a window free what it has left; else they keep all tokens of a request.
  bool frees_windows = false;
  /// Windows of compressed attention have a pool for so many tokens for each that the KV cache
  /// holds; 0: each request has its window in the KV cache (docs/notes/hybrid-serving.md).
  double window_ratio = 0.0;
};

/// An engine's memory for the states of mixers that keep one, beside keys and values
/// (docs/explanation/serving.md).
struct EngineStates {
  Dtype format = Dtype::fp32;  ///< Default format of a scan's state, and that of its tables.
  bool of_checkpoint = false;  ///< The default is published_states() instead.
  /// States take pages of the KV cache. Else they have a pool of their own.
  bool in_pages = false;
  /// Memory of that pool over that of the KV cache; 0: it holds one of each of max_seqs requests.
  double ratio = 0.0;
  /// States of the pool for each request that runs, where prefixes are kept.
  int with_prefixes = 1;
};

/// Tokens of an iteration on GPUs that have less memory than a limit.
struct BudgetOfMemory {
  Bytes below;
  std::int64_t budget = 0;
};

/// Defaults of what a deployment leaves unspecified.
struct EngineDefaults {
  std::int64_t budget = 0;                       ///< Tokens of an iteration.
  std::vector<BudgetOfMemory> budget_by_memory;  ///< The first that applies replaces `budget`.
  /// The budget is of all copies of attention together, and each has an equal part.
  bool copies_share_budget = false;
  std::int64_t max_seqs = 0;  ///< Requests of an iteration.
  /// Requests of all copies together for models with compressed attention; 0: as others.
  std::int64_t compressed_max_seqs = 0;
  /// The same on GPUs of less than 70 GiB and A100.
  std::int64_t small_gpu_budget = 0, small_gpu_max_seqs = 0;
  std::int64_t block = 16;  ///< Tokens of a KV block.
  bool chunked = true;      ///< A prompt may be prefilled in parts, together with decodes.
};

/// An engine's pipelines, whose stages take batches in turn.
struct EnginePipeline {
  bool limits_a_batch = false;   ///< max_seqs limits each batch; else all together.
  Seconds planning_per_request;  ///< Time between two batches, per request of all.
};

/// An engine's separate pools for prompts and answers.
struct EnginePools {
  KvSending sending = KvSending::whole;
  /// The decode pool computes the prompt's last token again, which makes the answer's first token.
  /// Else the first token comes with the keys and values.
  bool decode_makes_first_token = false;
  bool decode_keeps_prefixes = false;  ///< Prefixes in its cache need not be sent.
  /// The decode pool keeps preempted requests in the host's memory, and computes none again.
  bool decode_keeps_preempted = false;
  Seconds handover;  ///< Delay until the decode pool knows of a request: servers, proxies.
  /// Of a transfer between nodes: time in addition to its bytes', and its rate over that of the
  /// network.
  Seconds network_latency;
  double network_share = 1.0;
};

/// A serving engine of some release: workloads/engines/<name>.json ("orrery.engine/1"). Every
/// figure names its source there.
struct ServingEngine {
  std::string name;
  std::string title;
  const SchedulerKind* scheduler = schedulers().front();
  IterationHost host;
  SmallKernels small;
  MemoryRule memory;
  EngineDefaults defaults;
  EnginePipeline pipeline;
  std::optional<EnginePools> pools;     ///< None: it has no pools.
  std::optional<EngineHostKv> host_kv;  ///< None: it keeps nothing in the host's memory.
  std::optional<EngineStates> states;   ///< None: it serves no mixers with a state.
  std::vector<std::string> drafts;      ///< Draft methods (speculation.hpp); empty: none.
  Seconds draft_host;                   ///< Host time of a drafted token.
  double gpu_slowdown = 1.0;            ///< Time of its kernels over those of the tables.
  Seconds client;                       ///< Time of a request outside the engine: HTTP, tokenizer.
  std::vector<std::string> kernels;     ///< Engines whose tables serve it, the nearest first.
  /// The same for one op and format ("gemm-fp8"), if that differs.
  std::map<std::string, std::vector<std::string>> kernels_of;
  /// Highest rate of products with weights of 4 or 8 bits and the other operand in 16, by word of
  /// Architecture; where there is none, the 16-bit peak has the usual share.
  std::map<std::string, FlopPerSecond> weight_only_rate;
  /// Formats of experts whose products are FlashInfer's TRTLLM-gen kernels on Blackwell with HBM.
  std::vector<Dtype> trtllm_gen;
  /// Tokens go to experts of other ranks in the experts' format; else in 16 bits.
  bool dispatches_quantised = false;
  /// Experts are shared by all ranks of a stage or by none.
  bool experts_over_all = false;
  /// Attention is data-parallel over all ranks of a stage (dp) or over none (tp).
  bool attention_over_all = false;
  /// Weights in fp8 blocks are cut over ranks only between blocks of 128 columns.
  bool cuts_whole_blocks = false;
  /// The KV cache has the format that a checkpoint names, unless the server is told another.
  bool takes_kv_of_checkpoint = false;
  std::string all_reduce;  ///< Engine of the all-reduce tables; "nccl": NCCL's, as in training.
  std::map<std::string, std::string> all_reduce_on;  ///< Exceptions, by GPU.
  std::vector<std::string> weights, experts, kv;     ///< Its formats.

  std::optional<JsonValue> document;  ///< The JSON that it was read from.
};

/// `word`: a name in workloads/engines or a path.
ServingEngine read_serving_engine(const std::string& word, const Place& at);
/// Errors (bad_input): unknown or missing keys, figures without a source or out of range.
ServingEngine parse_serving_engine(const JsonValue& json);

}  // namespace orrery
