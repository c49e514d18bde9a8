#include "sim/layers/memory.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "sim/layers/host_optimizer.hpp"
#include "sim/layers/layer_activations.hpp"
#include "sim/layers/rank_parameters.hpp"
#include "sim/layers/shard_units.hpp"
#include "sim/model/layer_pattern.hpp"

namespace orrery {
namespace {

// CUDA context, cuBLAS workspaces and NCCL's buffers together take 0.5 to 3.5 GB in published
// measurements (NVIDIA aiconfigurator counts 0.34 to 0.39 GB for NCCL alone); 1.5 GB is assumed.
constexpr Bytes reserve{1.5e9};

double microbatch_tokens(const Scenario& s) {
  return static_cast<double>(s.tokens_per_microbatch());
}

// Further activations of a layer while it is recomputed. The reserve has the attention core.
Bytes held_while_recomputed(const Scenario& s, LayerKind kind, double fullest) {
  const RecomputeChoice& choice = s.plan.recompute;
  const Bytes whole = layer_activations(s, Recompute::none, kind, fullest);
  if (kind.kept) return {};
  if (choice.kind == Recompute::full || alternates_products(s, choice)) return whole;
  return choice.modules.empty() ? Bytes{} : whole - layer_activations(s, choice, kind, fullest);
}

// Memory of layers of each shape, with and without experts; a window changes nothing.
class LayerMemory {
 public:
  LayerMemory(const Scenario& s, double fullest_rows) {
    const int shapes = s.model.pattern ? static_cast<int>(s.model.pattern->shapes.size()) : 1;
    kept_.resize(8 * static_cast<std::size_t>(shapes));
    recomputed_.resize(kept_.size());
    offloaded_.resize(kept_.size());
    for (int shape = 0; shape < shapes; ++shape)
      for (const bool has_experts : {false, true})
        for (const bool kept : {false, true})
          for (const bool sixteen_bit : {false, true}) {
            if (sixteen_bit && !s.plan.keeps_layers_in_bf16()) continue;
            const LayerKind kind{has_experts, 0, kept, shape, sixteen_bit};
            if (has_experts && !s.shape_of(kind).experts) continue;
            if (s.model.pattern && !has_experts && s.shape_of(kind).experts) continue;
            if (kept && s.plan.recompute.layers == 0) continue;
            const RecomputeChoice choice = kept ? Recompute::none : s.plan.recompute;
            offloaded_[index(kind)] = offloaded_activations(s, kind, fullest_rows);
            kept_[index(kind)] =
                layer_activations(s, choice, kind, fullest_rows) - offloaded_[index(kind)];
            recomputed_[index(kind)] = held_while_recomputed(s, kind, fullest_rows);
          }
  }
  Bytes kept(LayerKind kind) const { return kept_[index(kind)]; }
  Bytes while_recomputed(LayerKind kind) const { return recomputed_[index(kind)]; }
  Bytes offloaded(LayerKind kind) const { return offloaded_[index(kind)]; }

 private:
  static std::size_t index(LayerKind kind) {
    return 8 * static_cast<std::size_t>(kind.shape) + (kind.has_experts ? 1 : 0) +
           (kind.kept ? 2 : 0) + (kind.sixteen_bit ? 4 : 0);
  }
  std::vector<Bytes> kept_, recomputed_, offloaded_;
};

// The first layer of each virtual stage. Computed once, as a search queries memory most often, and
// for a hundred stages.
std::vector<int> first_layers(const Scenario& s) {
  std::vector<int> first(s.layers_of.size());
  std::exclusive_scan(s.layers_of.begin(), s.layers_of.end(), first.begin(), 0);
  return first;
}

ActivationParts parts_of(const Scenario& s, int stage, const std::vector<int>& first_layers,
                         const Held& held, const LayerMemory& layer) {
  ActivationParts parts;
  Bytes copied;  // The most that two layers in flight offload.
  bool sends = false;
  for (int chunk = 0; chunk < s.plan.chunks(); ++chunk) {
    const int virtual_stage = s.plan.virtual_stage(stage, chunk);
    sends = sends || s.plan.sends_on(virtual_stage);
    Bytes sum, most, next;  // `next`: a second layer's.
    const auto add = [&](LayerKind kind) {
      sum += layer.kept(kind);
      // A forward pass takes a layer's memory before the concurrent backward pass frees one's
      // (Megatron Core, model_chunk_schedule_plan.py).
      if (held.one_more_layer) parts.concurrent = std::max(parts.concurrent, layer.kept(kind));
      parts.recomputed = std::max(parts.recomputed, layer.while_recomputed(kind));
      const Bytes offloaded = layer.offloaded(kind);
      next = std::max(next, std::min(most, offloaded));
      most = std::max(most, offloaded);
    };
    const int first = first_layers[static_cast<std::size_t>(virtual_stage)];
    for (int l = 0; l < s.layers_of[static_cast<std::size_t>(virtual_stage)]; ++l)
      if (first + l >= s.plan.offload_layers) add(s.kind_of(first + l));
    if (virtual_stage == s.plan.virtual_stages() - 1)
      for (int i = 0; i < s.model.prediction_layers; ++i)
        for (const LayerKind kind : s.prediction_kinds()) add(kind);
    // A layer's part is on the GPU while the next one's is copied.
    copied = std::max(copied, most + (held.chunks > 1 ? most : next));
    Bytes& of_copy =
        parts.micro_batch[chunk < s.plan.vpp ? 0 : 1];  // Plan::copy_of, without a division.
    of_copy = std::max(of_copy, sum);
  }
  parts.recomputed += copied;
  // A chunk's output is also the next chunk's saved input, but on another rank.
  if (!s.software.frees_outputs && sends)
    for (Bytes& of_copy : parts.micro_batch)
      of_copy += Bytes{unquantised_bytes(s.plan.dtype) * microbatch_tokens(s) *
                       static_cast<double>(s.model.hidden) * (s.plan.sp ? 1.0 / s.plan.tp : 1.0)};
  return parts;
}

Held held_by(const Scenario& s, int stage) {
  return s.plan.schedule->held(s.plan.pipeline(), stage);
}

Bytes activations_in_flight(const Scenario& s, int stage, const std::vector<int>& first_layers,
                            const LayerMemory& layer) {
  const Held held = held_by(s, stage);
  const ActivationParts parts = parts_of(s, stage, first_layers, held, layer);
  return held.of(parts.micro_batch) + parts.recomputed + parts.concurrent;
}

// Tokens whose logits are in memory at once. In chunks as in Liger Kernel (arXiv 2410.10989,
// section 3.2, fused linear cross entropy): about hidden/vocab of all, as a power of two.
double tokens_with_logits(const Scenario& s) {
  const double tokens = microbatch_tokens(s);
  if (!s.plan.chunked_loss) return tokens;
  const double chunks =
      std::ceil(static_cast<double>(s.padded_vocab) / static_cast<double>(s.model.hidden));
  return std::min(tokens, std::exp2(std::ceil(std::log2(std::ceil(tokens / chunks)))));
}

Bytes other_bytes(const Scenario& s, int stage) {
  const double share = s.plan.sp ? 1.0 / s.plan.tp : 1.0;
  const double tensor = unquantised_bytes(s.plan.dtype) * microbatch_tokens(s) *
                        static_cast<double>(s.model.hidden) * share;
  Bytes sum = reserve;
  if (s.plan.pp > 1) sum += Bytes{4.0 * tensor};  // Received and to be sent, in both directions.
  if (!s.plan.holds(stage, s.plan.virtual_stages() - 1)) return sum;
  // Final norm's and head's inputs; logits. Each further prediction has a head's pass of its own,
  // whose softmax in fp32 waits for the backward pass, too (Megatron-LM,
  // core/tensor_parallel/cross_entropy.py: saved for backward).
  const double waiting = s.plan.chunked_loss ? 0.0 : 4.0 * s.model.prediction_layers;
  return sum +
         Bytes{2.0 * tensor + (s.software.logit_held_bytes + waiting) * tokens_with_logits(s) *
                                  static_cast<double>(s.padded_vocab / s.plan.tp)};
}

// Parameters that products read. The optimizer's state includes their shards.
double whole_weights(const Scenario& s, int stage, double parameters) {
  return s.plan.reshard ? std::min(parameters, two_shard_units(s, stage)) : parameters;
}

// Bytes of frozen weights in their own format and of adapters in 16 bits. Of shards, which no
// optimizer's state includes, two units are whole at a time.
double frozen_and_adapters(const Scenario& s, int stage, const RankParameters& parameters) {
  const FrozenParameters& frozen = parameters.frozen;
  const double linear = stored_bytes(s.plan.base_format);
  const double others = unquantised_bytes(s.plan.dtype);
  const double dense = linear * static_cast<double>(frozen.dense) +
                       others * static_cast<double>(frozen.others + parameters.dense);
  const double experts = linear * static_cast<double>(frozen.experts) +
                         others * static_cast<double>(parameters.experts);
  if (!s.plan.shards_weights()) return dense + experts;
  const double whole = s.software.weight_bytes * two_shard_units(s, stage);
  const double shards = dense / s.plan.shard_ranks() + experts / s.plan.expert_shard_ranks();
  return s.plan.reshard ? std::min(dense + experts, shards + whole) : dense + experts;
}

// The embedding and the head, which stay in 16 bits even if the weights of linear layers are in 8.
double table_parameters(const Scenario& s, int stage) {
  double tables = 0.0;
  for (int chunk = 0; chunk < s.plan.chunks(); ++chunk) {
    const int v = s.plan.virtual_stage(stage, chunk);
    if (v == 0) tables += 1.0;
    if (v == s.plan.virtual_stages() - 1 && !(s.plan.joins_ends() && s.model.tied_embeddings))
      tables += 1.0;
  }
  return tables * static_cast<double>(s.padded_vocab / s.plan.tp * s.model.hidden);
}

// Shards, and the gradients of units that are being reduced.
double gradient_bytes(const Scenario& s, int stage, const RankParameters& parameters) {
  // Bucket buffers of torch's DistributedDataParallel add to the gradients
  // (gradient_as_bucket_view).
  const double copies =
      s.plan.zero == 0 && s.plan.data_ranks() > 1 ? s.software.bucket_copy_bytes : 0.0;
  const double whole =
      (s.software.main_gradient_bytes + copies) * static_cast<double>(parameters.sum());
  if (!s.plan.shards_gradients()) return whole;
  const double on_host = s.plan.streams_gradients() ? s.plan.offload_optimizer / 100.0 : 0.0;
  const double shards =
      (1.0 - on_host) * (static_cast<double>(parameters.dense) / s.plan.shard_ranks() +
                         static_cast<double>(parameters.experts) / s.plan.expert_shard_ranks());
  if (!s.plan.trains_weights()) return whole;
  return std::min(whole, s.software.main_gradient_bytes * shards +
                             s.software.held_weight_bytes * two_shard_units(s, stage));
}

}  // namespace

int MemoryReport::fullest_stage() const {
  const auto fullest = std::max_element(
      stages.begin(), stages.end(),
      [](const StageMemory& a, const StageMemory& b) { return a.peak() < b.peak(); });
  return static_cast<int>(fullest - stages.begin());
}

Bytes MemoryReport::peak() const {
  return stages[static_cast<std::size_t>(fullest_stage())].peak();
}

namespace {

// Activations on the host of all micro-batches that are in flight on a stage.
Bytes activations_on_host_of(const Scenario& s, int stage) {
  if (!s.plan.offloads_activations()) return {};
  std::array<Bytes, 2> of_copy{};
  for (int chunk = 0; chunk < s.plan.chunks(); ++chunk) {
    Bytes& most = of_copy[chunk < s.plan.vpp ? 0 : 1];
    most = std::max(most, activations_on_host(s, s.plan.virtual_stage(stage, chunk)));
  }
  return held_by(s, stage).of(of_copy);
}

// Rows of the fullest rank's experts over those of even routing are `fullest`.
MemoryReport memory_with(const Scenario& s, double fullest) {
  MemoryReport report;
  report.capacity = s.system.gpu.memory;
  report.host_capacity = s.system.host_memory;
  report.stages.reserve(static_cast<std::size_t>(s.plan.pp));
  const LayerMemory layer{s, fullest};
  const std::vector<int> first = first_layers(s);
  const std::vector<RankParameters> on_rank = parameters_by_stage(s);
  for (int stage = 0; stage < s.plan.pp; ++stage) {
    RankParameters parameters;
    double updated = 0.0;
    for (int chunk = 0; chunk < s.plan.chunks(); ++chunk) {
      const RankParameters& held =
          on_rank[static_cast<std::size_t>(s.plan.virtual_stage(stage, chunk))];
      parameters += held;
      updated += static_cast<double>(held.dense) / s.plan.optimizer_shards();
      updated += static_cast<double>(held.experts) / s.plan.expert_optimizer_shards();
    }
    StageMemory memory;
    memory.weights = Bytes{s.plan.trains_weights()
                               ? s.software.held_weight_bytes *
                                     whole_weights(s, stage, static_cast<double>(parameters.sum()))
                               : frozen_and_adapters(s, stage, parameters)};
    if (s.plan.fp8_params)
      memory.weights += Bytes{(2.0 - s.software.held_weight_bytes) * table_parameters(s, stage)};
    memory.gradients = Bytes{gradient_bytes(s, stage, parameters)};
    const HostOptimizer on_host = host_optimizer(s, updated);
    memory.optimizer = on_host.kept;
    const Bytes activations = gpus_of_a_host(s) * activations_on_host_of(s, stage);
    const Bytes all = gpus_of_a_host(s) * on_host.state + activations;
    if (all > report.host) report.host = all, report.host_activations = activations;
    memory.activations = activations_in_flight(s, stage, first, layer);
    memory.other = other_bytes(s, stage);
    report.stages.push_back(memory);
  }
  return report;
}

}  // namespace

MemoryReport memory_of(const Scenario& scenario, const RoutedLoads& loads) {
  return memory_with(scenario, loads.fullest(scenario));
}

std::string text_of_host(const Plan& plan) {
  if (!plan.offloads_activations()) return "the optimizer";
  return plan.offload_optimizer > 0 ? "the optimizer and activations" : "activations";
}

std::vector<ActivationParts> activation_parts(const Scenario& s, const RoutedLoads& loads) {
  const LayerMemory layer{s, loads.fullest(s)};
  const std::vector<int> first = first_layers(s);
  std::vector<ActivationParts> parts;
  for (int stage = 0; stage < s.plan.pp; ++stage)
    parts.push_back(parts_of(s, stage, first, held_by(s, stage), layer));
  return parts;
}

MemoryReport memory_of(const Scenario& scenario) {
  return memory_of(scenario, RoutedLoads{scenario});
}

MemoryReport least_memory_of(const Scenario& scenario) { return memory_with(scenario, 1.0); }

}  // namespace orrery
