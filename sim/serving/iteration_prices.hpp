#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/collectives/collective_time.hpp"
#include "sim/kernels/kernel_time.hpp"
#include "sim/moe/expert_exchange.hpp"
#include "sim/serving/deployment.hpp"
#include "sim/serving/served_layers.hpp"
#include "sim/serving/serving_kernels.hpp"

namespace orrery {

/// Tensor-parallel all-reduces of an engine on a system: its own kernel inside a node, if one was
/// measured over so many GPUs, and NCCL's if that is faster (engines hand long tensors to NCCL) or
/// the group leaves the node.
class GroupReduce {
 public:
  GroupReduce(const System& system, const ServingKernels& kernels);

  /// An all-reduce of `elements` of 16 bits over `gpus` neighbouring GPUs: as measured with the
  /// engine's kernel where the GPUs have the links that were measured, else NCCL's. One GPU takes
  /// no time. `in_graph`: a CUDA graph launches it.
  KernelTime operator()(int gpus, std::int64_t elements, bool in_graph) const;
  /// A collective by NCCL over `gpus` GPUs. `tensor`: its size as CollectiveTime counts it.
  KernelTime by_nccl(CollectiveKind kind, int gpus, Bytes tensor, bool in_graph) const;
  /// Costs of the system's collectives.
  const CollectiveTime& collectives() const;

 private:
  System system_;
  const ServingKernels* kernels_;
  bool has_measured_links_;
  mutable std::shared_ptr<const CollectiveTime> nccl_;  // Read when first needed.
};

/// A part of a prompt that an iteration prefills: `tokens` new ones behind `cached` ones.
struct PrefillChunk {
  std::int64_t tokens = 0;
  std::int64_t cached = 0;
};

/// The work of one attention rank in an iteration.
struct Iteration {
  std::int64_t decodes = 0;  ///< Requests that get one token each.
  std::int64_t context = 0;  ///< Sum of their tokens in the cache.
  std::vector<PrefillChunk> chunks{};
  std::int64_t heads = 0;  ///< Rows of the output head: decodes, and prompts that end here.

  std::int64_t tokens() const;
  /// The mean of all chunks, of which there must be one.
  PrefillChunk mean_chunk() const;
};

/// Kernels of one kind in an iteration, over all layers of the model.
struct IterationPart {
  std::string op;  ///< "gemm.qkv", "decode_attention", "all_reduce", ...
  int count = 0;   ///< Kernels.
  Seconds time;
  Tag tag = Tag::default_value;
  Bytes bytes;  ///< Traffic of memory; of the link in an all-reduce.
  Flop flop;
  FlopPerSecond peak;  ///< Peak of the units that multiply; 0: none do.
};

/// Returns the bottleneck of a part on a GPU whose memory has this bandwidth.
Bound bound_of(const IterationPart& part, BytesPerSecond bandwidth);

struct IterationPrice {
  std::vector<IterationPart> parts;
  Seconds eager;  ///< Lower bound by launches, if kernels are launched one by one.
  Seconds gpu;    ///< All parts, or `eager` if that is longer.
  Seconds host, gap;
  Seconds step;  ///< Time from the start of this iteration to that of the next.
  Bound bound = Bound::memory;
};

/// Lower bound of attention over the cache, over all layers: for an iteration with decodes, and for
/// each token that they have in the cache.
struct AttentionFloor {
  Seconds an_iteration;
  Seconds a_token;
};

/// Costs of a deployment's iterations, uncontended (docs/explanation/serving.md).
///
///     gpu  = dense(tokens) + decode_attention + prefill_attention + together + head(rows)
///     step = max(gpu, host) + gap, or gpu + host + gap where the engine does not hide its host
///
/// With speculative decoding a step works on all drafted tokens of its requests: price() counts
/// them, and callers of single parts count them in `tokens` and `rows`.
///
/// All layers of a replica are counted, whatever the number of stages: an iteration passes through
/// all of them. With attention parallelism by copies the tokens are those of the fullest rank.
class IterationPrices {
 public:
  /// `kernels`: those of the system's GPU and the engine, shared with others; null: own ones.
  IterationPrices(const Model& model, const System& system, const Deployment& deployment,
                  const ServingEngine& engine,
                  std::shared_ptr<const ServingKernels> kernels = nullptr);
  IterationPrices(const IterationPrices&) = delete;  // reduce_ refers to *kernels_.
  IterationPrices& operator=(const IterationPrices&) = delete;

  /// All kernels except attention over the cache, those of together() and the head. Exact up to 64
  /// tokens, then interpolated between 16 points an octave.
  Seconds dense(std::int64_t tokens) const;
  /// Attention, and a step of the states of mixers that keep one. `context`: summed over all
  /// `requests`. Interpolated between 8 points an octave.
  Seconds decode_attention(std::int64_t requests, std::int64_t context) const;
  /// A lower bound of decode_attention() for all batches, by the memory's bandwidth. Layers with
  /// windows count no token.
  AttentionFloor least_decode_attention() const;
  Seconds prefill_attention(const PrefillChunk& chunk) const;
  /// Kernels that take parts of `prompts` prompts at once, each like `chunk`: scans and
  /// convolutions of mixers with a state, modules of attention. 0: there are no such layers.
  Seconds together(std::int64_t prompts, const PrefillChunk& chunk) const;
  Seconds head(std::int64_t rows) const;
  Seconds host(std::int64_t requests) const;
  Seconds gap(std::int64_t requests) const;
  /// Lower bound of the GPU's time by launches from the host, for `tokens` tokens, `prompts` or
  /// decodes alone.
  Seconds eager(std::int64_t tokens, bool prompts) const;

  /// The price of one iteration with its parts, each at its own sizes.
  IterationPrice price(const Iteration& iteration) const;

  /// Time to draft the tokens that a decode step of `requests` requests verifies, without attention
  /// over the cache; 0 if nothing is drafted.
  Seconds draft(std::int64_t requests) const;
  Seconds draft_attention(std::int64_t requests, std::int64_t context) const;

  /// Time between two stages of a pipeline; 0 if there is one stage.
  Seconds hop(std::int64_t tokens) const;
  /// Shares of the layers that the longest stage and the last one have: the first stages have one
  /// more if layers do not divide (tensorrt_llm/mapping.py, pp_layers, and, but for the first one,
  /// vllm/distributed/utils.py, get_pp_indices).
  double longest_stage() const;
  double last_stage() const;
  /// Time of a stage's host between two batches, for the requests of all batches.
  Seconds planning(std::int64_t requests) const;

  const ServingKernels& kernels() const { return *kernels_; }

 private:
  /// Whether a CUDA graph launches the kernels for `tokens` tokens, `prompts` or decodes alone.
  bool in_graph(std::int64_t tokens, bool prompts) const;
  std::vector<IterationPart> dense_parts(std::int64_t tokens) const;
  std::vector<IterationPart> undivided_parts(std::int64_t tokens) const;
  std::vector<IterationPart> decode_parts(std::int64_t requests, std::int64_t context) const;
  std::vector<IterationPart> prefill_parts(const PrefillChunk& chunk) const;
  std::vector<IterationPart> joint_parts(std::int64_t prompts, const PrefillChunk& chunk) const;
  std::vector<IterationPart> head_parts(std::int64_t rows) const;
  IterationPart product(const std::string& op, int count, Dtype format, std::int64_t n,
                        std::int64_t k, std::int64_t m) const;
  void products(const std::string& op, const ServedLayers& of, int layers, Dtype format,
                std::int64_t n, std::int64_t k, std::int64_t m,
                std::vector<IterationPart>& parts) const;
  void attention_products(const ServedLayers& of, std::int64_t tokens,
                          std::vector<IterationPart>& parts) const;
  void state_products(const ServedLayers& of, std::int64_t tokens,
                      std::vector<IterationPart>& parts) const;
  void mlp_products(const ServedLayers& of, std::int64_t tokens,
                    std::vector<IterationPart>& parts) const;
  void expert_layers(const ServedLayers& of, std::int64_t tokens,
                     std::vector<IterationPart>& parts) const;
  void router(const ServedLayers& of, std::vector<IterationPart>& parts) const;
  void set_exchange();
  void dispatched_experts(const ServedLayers& of, std::int64_t tokens,
                          std::vector<IterationPart>& parts) const;
  IterationPart gathered_exchange(const ServedLayers& of, std::int64_t tokens) const;
  Bytes bytes_between_products(const ServedLayers& of) const;
  void mix_streams(const ServedLayers& of, std::int64_t tokens,
                   std::vector<IterationPart>& parts) const;
  void between_products(const ServedLayers& of, std::int64_t tokens,
                        std::vector<IterationPart>& parts) const;
  IterationPart decode_attention_of(const ServedLayers& of, std::int64_t window, int layers,
                                    std::int64_t requests, std::int64_t context) const;
  IterationPart module_part(const ServedLayers& of, std::int64_t requests, std::int64_t tokens,
                            std::int64_t context) const;
  void decode_states(const ServedLayers& of, std::int64_t requests,
                     std::vector<IterationPart>& parts) const;
  IterationPart prefill_attention_of(const ServedLayers& of, std::int64_t window, int layers,
                                     const PrefillChunk& chunk) const;

  Model model_;
  System system_;
  Deployment plan_;
  ServingEngine engine_;
  std::shared_ptr<const ServingKernels> kernels_;
  GroupReduce reduce_;
  std::unique_ptr<const IterationPrices> drafter_;  // One token's draft; null: no kernels.
  std::vector<ServedLayers> layers_;
  double whole_layers_ = 0.0;
  ExchangeShape exchange_;  // Both are of Deployment::dispatches.
  ExchangeLoad load_of_a_token_;
  mutable std::map<std::int64_t, Seconds> known_dense_, known_head_;
  mutable std::map<std::pair<std::int64_t, std::int64_t>, Seconds> known_decode_;
};

/// The sum of the parts' times.
Seconds total(const std::vector<IterationPart>& parts);

}  // namespace orrery
