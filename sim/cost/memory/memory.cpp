#include "sim/cost/memory/memory.hpp"

#include <algorithm>

#include "sim/cost/operations/rank_parameters.hpp"
#include "sim/cost/passes/shard_units.hpp"

namespace orrery {
namespace {

constexpr double weight_bytes = 2.0;
constexpr double optimizer_bytes = 12.0;  // fp32 weight and Adam's two moments.

// CUDA context, cuBLAS workspaces and NCCL's buffers together take 0.5 to 3.5 GB in published
// measurements (NVIDIA aiconfigurator counts 0.34 to 0.39 GB for NCCL alone); the middle is
// assumed.
constexpr Bytes reserve{1.5e9};

double tokens(const Scenario& s) { return static_cast<double>(s.tokens_per_microbatch()); }

// Bytes of an element of what a product keeps of its input for its weight gradient. Scales of
// blocks add a 32nd (OCP Microscaling, v1.0).
double product_input(const Scenario& s) {
  if (!is_8_bit(s.plan.dtype) || !s.software.keeps_quantised_inputs) return 2.0;
  return s.plan.dtype == Dtype::mxfp8 ? 1.0 + 1.0 / 32.0 : 1.0;
}
bool quantises(const Scenario& s) { return product_input(s) < 2.0; }

bool alternates(const Scenario& s, const RecomputeChoice& recompute) {
  return recompute == Recompute::selective &&
         s.software.selective_recompute == SelectiveRecompute::alternate_products;
}

// What a layer holds beside what it keeps while it is computed again. The attention core alone is
// in the reserve.
Bytes held_while_recomputed(const Scenario& s, LayerKind kind, double fullest) {
  const RecomputeChoice& choice = s.plan.recompute;
  const Bytes whole = layer_activations(s, Recompute::none, kind, fullest);
  if (choice.kind == Recompute::full || alternates(s, choice)) return whole;
  return choice.modules.empty() ? Bytes{} : whole - layer_activations(s, choice, kind, fullest);
}

// What layers with and without experts hold; a window changes nothing.
class LayerMemory {
 public:
  LayerMemory(const Scenario& s, double fullest_rows) {
    for (LayerKind kind : {LayerKind::dense, LayerKind::experts}) {
      if (kind.has_experts && !s.model.experts) continue;
      kept_[index(kind)] = layer_activations(s, s.plan.recompute, kind, fullest_rows);
      recomputed_[index(kind)] = held_while_recomputed(s, kind, fullest_rows);
    }
  }
  Bytes kept(LayerKind kind) const { return kept_[index(kind)]; }
  Bytes while_recomputed(LayerKind kind) const { return recomputed_[index(kind)]; }

 private:
  static std::size_t index(LayerKind kind) { return kind.has_experts ? 1 : 0; }
  Bytes kept_[2];
  Bytes recomputed_[2];
};

Bytes activations_in_flight(const Scenario& s, int stage, const LayerMemory& layer) {
  const Held held = s.plan.schedule->held(s.plan.pipeline(), stage);
  Bytes fullest;
  Bytes one_whole_layer;  // While it is computed again.
  // A pass that runs beside a backward pass takes a layer's memory before that gives one back
  // (Megatron Core, model_chunk_schedule_plan.py).
  Bytes one_more_layer;
  bool sends = false;
  for (int chunk = 0; chunk < s.plan.chunks(); ++chunk) {
    const int virtual_stage = s.plan.virtual_stage(stage, chunk);
    sends = sends || s.plan.sends_on(virtual_stage);
    Bytes sum;
    const auto add = [&](LayerKind kind) {
      sum += layer.kept(kind);
      if (held.one_more_layer) one_more_layer = std::max(one_more_layer, layer.kept(kind));
      one_whole_layer = std::max(one_whole_layer, layer.while_recomputed(kind));
    };
    const int first = s.first_layer(virtual_stage);
    for (int l = 0; l < s.layers_of[static_cast<std::size_t>(virtual_stage)]; ++l)
      add(s.kind_of(first + l));
    if (virtual_stage == s.plan.virtual_stages() - 1)
      for (int i = 0; i < s.model.prediction_layers; ++i) add(s.kind_of(s.model.layers - 1));
    fullest = std::max(fullest, sum);
  }
  // What a chunk sent on is the same as what the next one keeps of it, but on another rank.
  if (!s.software.frees_outputs && sends)
    fullest += Bytes{2.0 * tokens(s) * static_cast<double>(s.model.hidden) *
                     (s.plan.sp ? 1.0 / s.plan.tp : 1.0)};
  return static_cast<double>(held.chunks) * fullest + one_whole_layer + one_more_layer;
}

Bytes other_bytes(const Scenario& s, int stage) {
  const double share = s.plan.sp ? 1.0 / s.plan.tp : 1.0;
  const double tensor = 2.0 * tokens(s) * static_cast<double>(s.model.hidden) * share;
  Bytes sum = reserve;
  if (s.plan.pp > 1) sum += Bytes{4.0 * tensor};  // Received and to be sent, in both directions.
  // Final norm's and head's inputs; logits.
  if (s.plan.holds(stage, s.plan.virtual_stages() - 1))
    sum += Bytes{2.0 * tensor + s.software.logit_held_bytes * tokens(s) *
                                    static_cast<double>(s.padded_vocab / s.plan.tp)};
  return sum;
}

// Parameters that are held in 16 bits. Shards are held in 32 bits, which the optimizer counts.
double whole_weights(const Scenario& s, int stage, double parameters) {
  return s.plan.reshard ? std::min(parameters, two_shard_units(s, stage)) : parameters;
}

// Shards, and the gradients of units that are being reduced.
double gradient_bytes(const Scenario& s, int stage, double parameters) {
  const double whole = s.software.main_gradient_bytes * parameters;
  if (!s.plan.shards_gradients()) return whole;
  return std::min(whole, s.software.main_gradient_bytes * parameters / s.plan.data_ranks() +
                             weight_bytes * two_shard_units(s, stage));
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

// Queries, keys, values; the attention's output, which is the projection's input; of latent
// attention also what is projected up, before and after its norm.
double attention_bytes(const Scenario& s, const RecomputeChoice& choice, double t) {
  if (const auto& latent = s.model.latent) {
    const auto down =
        static_cast<double>(2 * (latent->q_rank + latent->kv_rank) + latent->rope_dim);
    const bool up = !choice.selects(RecomputeModule::mla_up_proj);  // Else the output alone.
    const auto output = static_cast<double>(s.model.heads * latent->v_dim);
    const auto wide = static_cast<double>(
        s.model.heads * (up ? 2 * (s.model.head_dim + latent->v_dim) : latent->v_dim));
    // Products' inputs in 8 bits: latents after their norms, which lose as much, and the output.
    const auto latents = static_cast<double>(latent->q_rank + latent->kv_rank);
    const double saved = (2.0 - product_input(s)) * latents / (s.plan.sp ? t : 1.0);
    const double added = quantises(s) ? product_input(s) * output / t : 0.0;
    return tokens(s) * (2.0 * (down / (s.plan.sp ? t : 1.0) + wide / t) - saved + added);
  }
  const double head_width = static_cast<double>(s.model.heads * s.model.head_dim);
  const double kv_width =
      static_cast<double>(std::max<std::int64_t>(s.model.kv_heads, s.plan.tp) * s.model.head_dim);
  // The output is also the projection's input, which is kept beside it in 8 bits.
  const double input = quantises(s) ? product_input(s) * head_width : 0.0;
  return tokens(s) * (2.0 * (2.0 * head_width + 2.0 * kv_width) + input) / t;
}

// An activation's input (both halves where it is gated) and output, which the next product reads,
// of `rows` tokens.
double activation_sides(const Scenario& s, double rows, double width, bool output = true) {
  return rows * (2.0 * (s.model.gated ? 2.0 : 1.0) + (output ? product_input(s) : 0.0)) * width;
}

double experts_bytes(const Scenario& s, const RecomputeChoice& choice, double t, double fullest) {
  if (choice.selects(RecomputeModule::moe)) return 0.0;  // Its input is a norm's output.
  const Experts& experts = *s.model.experts;
  const double own = tokens(s) / (s.plan.sp ? t : 1.0);
  const double rows = fullest * own * static_cast<double>(experts.per_token * s.plan.etp);
  // What comes back is summed up and let go: the router's weights were applied by the experts'
  // activation (Megatron Core, moe/experts.py, permuted_probs).
  double sum = product_input(s) * static_cast<double>(s.model.hidden) * rows;
  sum += activation_sides(s, rows, static_cast<double>(experts.ffn) / s.plan.etp,
                          !choice.selects(RecomputeModule::moe_act));
  // What was limited, beside what it was made of.
  if (s.model.clamped_activation && !s.software.fused_experts &&
      !choice.selects(RecomputeModule::moe_act))
    sum += 4.0 * rows * static_cast<double>(experts.ffn) / s.plan.etp;
  if (!choice.selects(RecomputeModule::shared_experts))
    sum += activation_sides(s, tokens(s), static_cast<double>(experts.shared_ffn) / t);
  return sum + 6.0 * own * static_cast<double>(experts.count);  // fp32 logits, 16-bit weights.
}

}  // namespace

Bytes layer_activations(const Scenario& s, const RecomputeChoice& recompute, LayerKind kind,
                        double fullest) {
  const auto t = static_cast<double>(s.plan.tp);
  const double hidden = tokens(s) * static_cast<double>(s.model.hidden);  // s b h
  const double own = s.plan.sp ? hidden / t : hidden;
  if (recompute.kind == Recompute::full) return Bytes{2.0 * own};

  const double rows = tokens(s) * static_cast<double>(s.model.heads) / t;
  if (alternates(s, recompute)) {
    // The layer's input; queries, values and attention's output with its log-sum-exp; the MLP's
    // first input, which without a gate is its activation's.
    const auto head_dim = static_cast<double>(s.model.head_dim);
    const auto values = static_cast<double>(std::max<std::int64_t>(s.model.kv_heads, s.plan.tp));
    const double wide = 2.0 * static_cast<double>(s.model.heads) + values;
    return Bytes{2.0 * own + 4.0 * rows +
                 2.0 * tokens(s) * (wide * head_dim + static_cast<double>(s.model.ffn)) / t};
  }

  const double dropout = s.software.dropout ? 1.0 : 0.0;
  // Two blocks, each with a norm, or two in parallel, which read the same. The input of each, a
  // mask byte for its residual dropout; outputs of norms.
  const double blocks = s.model.parallel_residual ? 1.0 : 2.0;
  const double norms = s.model.parallel_residual ? s.model.norms_per_layer : 2.0;
  const double outputs = s.software.gathers_inputs_again ? own : hidden;
  double sum = own * blocks * (2.0 + dropout) + attention_bytes(s, recompute, t);
  // The router reads the second norm's output in 16 bits, products that of all others.
  const double for_router = kind.has_experts ? 1.0 : 0.0;
  if (!recompute.selects(RecomputeModule::layernorm))
    sum += (product_input(s) * (norms - for_router) + 2.0 * for_router) * outputs;
  if (kind.has_experts)
    sum += experts_bytes(s, recompute, t, fullest);
  else if (!recompute.selects(RecomputeModule::mlp))
    sum += activation_sides(s, tokens(s), static_cast<double>(s.model.ffn) / t);
  if (s.plan.fused_attention)
    sum += 4.0 * rows;  // One fp32 log-sum-exp a query and head.
  else if (!recompute.selects(RecomputeModule::core_attn))
    // Softmax output; its dropout's mask and output.
    sum += rows * static_cast<double>(s.plan.seq) * (2.0 + 3.0 * dropout);
  return Bytes{sum};
}

namespace {

// `fullest`: rows of the fullest rank's experts over those of even routing.
MemoryReport memory_where(const Scenario& s, double fullest) {
  MemoryReport report;
  report.capacity = s.system.gpu.memory;
  report.stages.reserve(static_cast<std::size_t>(s.plan.pp));
  const LayerMemory layer{s, fullest};
  for (int stage = 0; stage < s.plan.pp; ++stage) {
    double parameters = 0.0;
    double updated = 0.0;
    for (int chunk = 0; chunk < s.plan.chunks(); ++chunk) {
      const RankParameters held = parameters_on_rank(s, s.plan.virtual_stage(stage, chunk));
      parameters += static_cast<double>(held.sum());
      updated += static_cast<double>(held.dense) / s.plan.optimizer_shards();
      updated += static_cast<double>(held.experts) / s.plan.expert_optimizer_shards();
    }
    StageMemory memory;
    memory.weights = Bytes{weight_bytes * whole_weights(s, stage, parameters)};
    memory.gradients = Bytes{gradient_bytes(s, stage, parameters)};
    memory.optimizer = Bytes{optimizer_bytes * updated};
    memory.activations = activations_in_flight(s, stage, layer);
    memory.other = other_bytes(s, stage);
    report.stages.push_back(memory);
  }
  return report;
}

}  // namespace

MemoryReport memory_of(const Scenario& scenario, const RoutedLoads& loads) {
  return memory_where(scenario, loads.fullest(scenario));
}

MemoryReport memory_of(const Scenario& scenario) {
  return memory_of(scenario, RoutedLoads{scenario});
}

MemoryReport least_memory_of(const Scenario& scenario) { return memory_where(scenario, 1.0); }

}  // namespace orrery
