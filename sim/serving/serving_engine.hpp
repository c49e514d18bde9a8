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

/// When what a prompt needs comes back from the host's memory.
enum class HostKvLoading {
  apart,   ///< While others are computed; the prompt begins when all of it is there.
  layers,  ///< Each layer's beside the computation of the one before.
  before   ///< Before the iteration in which the prompt begins, which waits for it.
};
template <>
inline const std::vector<std::string> enum_words<HostKvLoading>{"apart", "layers", "before"};

/// How an engine keeps keys and values of prompts in the host's memory
/// (docs/explanation/serving.md).
struct EngineHostKv {
  HostKvLoading loading = HostKvLoading::before;
  /// A block is copied to the host when it is computed, so that the host holds what the GPU does as
  /// well. Else it goes there when the GPU has no more room for it, and comes back as a whole.
  bool copies_at_once = false;
};

/// When keys and values of a prompt go to the pool that decodes.
enum class KvSending {
  whole,   ///< All of them when the prompt is computed.
  chunks,  ///< Those of each part of a prompt when it is, beside the next part.
  layers   ///< Those of each layer when it is computed.
};
template <>
inline const std::vector<std::string> enum_words<KvSending>{"whole", "chunks", "layers"};

/// What the host does for an iteration, and what the GPU waits between two.
struct IterationHost {
  bool hidden = true;  ///< The next iteration is prepared while one runs: max(), else a sum.
  /// The same where copies of attention share experts. Else they agree on each iteration first.
  bool hidden_with_copies = true;
  Seconds base, per_layer, per_request;
  Seconds gap, gap_per_request;
  Seconds eager_layer;             ///< Of one layer whose kernels are launched one by one.
  std::int64_t largest_graph = 0;  ///< Tokens; beyond, and at 0 always, layers are eager.
};

/// Kernels of a layer that no table holds: norms, rotary embedding, cache write, activation,
/// quantisation.
struct SmallKernels {
  double count = 0.0;  ///< A layer.
  Seconds each;        ///< Without what it moves.
  /// What lies between two products is read and written once. Else each kernel reads and writes
  /// tensors of its own.
  bool fused = true;
  /// Formats of weights for which kernels of their own quantise what products take.
  std::vector<Dtype> quantises_apart;
  Seconds router;    ///< Of a layer with experts.
  Seconds sampling;  ///< Of an iteration: beside the head's product.
  Seconds sampling_per_request;
};

/// How much of a GPU's memory becomes KV cache.
struct MemoryRule {
  bool share_of_rest = false;  ///< `share` of what weights leave; else of all, less the weights.
  double share = 0.0;
  Bytes reserve;           ///< Contexts, graphs, buffers of one rank alone.
  Bytes reserve_parallel;  ///< The same where ranks work together.
  /// Of the largest iteration: logits of all its requests at so many bytes for each word of the
  /// vocabulary, or a layer's own tensors, whichever is larger. 0: in `reserve`.
  double logit_bytes = 0.0;
};

/// What a plan has where it does not say.
struct EngineDefaults {
  std::int64_t budget = 0;    ///< Tokens of an iteration.
  std::int64_t max_seqs = 0;  ///< Requests of an iteration.
  /// The same on GPUs of less than 70 GiB and A100.
  std::int64_t small_gpu_budget = 0, small_gpu_max_seqs = 0;
  std::int64_t block = 16;  ///< Tokens of a KV block.
  bool chunked = true;      ///< A prompt may be prefilled in parts, beside decodes.
};

/// How an engine works where stages of a pipeline take batches in turn.
struct EnginePipeline {
  bool limits_a_batch = false;   ///< max_seqs is of each batch; else of all together.
  Seconds planning_per_request;  ///< Of each request of all batches, in a stage, between two.
};

/// How an engine works where one pool computes prompts and another makes the answers.
struct EnginePools {
  KvSending sending = KvSending::whole;
  /// The decode pool computes the prompt's last token again, and gets the answer's first token out
  /// of that. Else the first token comes with the keys and values.
  bool decode_makes_first_token = false;
  bool decode_keeps_prefixes = false;  ///< What it has of a prompt need not be sent.
  Seconds handover;  ///< Until the decode pool hears of a request: servers, proxies.
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
  std::vector<std::string> drafts;      ///< Ways to draft tokens (speculation.hpp); empty: none.
  Seconds draft_host;                   ///< Of a drafted token, beside its kernels.
  double gpu_slowdown = 1.0;            ///< Of its kernels over those of the tables.
  Seconds client;                       ///< Of a request outside the engine: HTTP, tokenizer.
  std::vector<std::string> kernels;     ///< Whose tables serve it, the nearest first.
  /// The same of one op and format ("gemm-fp8"), where that differs.
  std::map<std::string, std::vector<std::string>> kernels_of;
  /// Tokens go to experts of other ranks in the format that these multiply; else in 16 bits.
  bool dispatches_quantised = false;
  std::string all_reduce;  ///< Whose all-reduce tables; "nccl": NCCL's, as in training.
  std::map<std::string, std::string> all_reduce_on;  ///< By GPU, where another's kernels run there.
  std::vector<std::string> weights, experts, kv;     ///< Formats that it has.

  std::optional<JsonValue> document;  ///< What it was read from.
};

/// `word`: a name in workloads/engines or a path.
ServingEngine read_serving_engine(const std::string& word, const Place& at);
/// Errors (bad_input): unknown or missing keys, figures without a source or out of range.
ServingEngine parse_serving_engine(const JsonValue& json);

}  // namespace orrery
