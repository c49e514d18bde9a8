#include "sim/layers/layer_activations.hpp"

#include <algorithm>

#include "sim/layers/op_work.hpp"
#include "sim/layers/state_ops.hpp"

namespace orrery {
namespace {

double tokens(const Scenario& s) { return static_cast<double>(s.tokens_per_microbatch()); }
// Tokens between tensor-parallel parts: sequence parallelism gives each rank a share of them.
double own_tokens(const Scenario& s) { return tokens(s) / (s.plan.sp ? s.plan.tp : 1); }

// Bytes of an element of tensors that are kept unquantised.
double element(const Scenario& s) { return unquantised_bytes(s.plan.dtype); }

// Bytes of an element that a product keeps of its input for its weight gradient. Scales of blocks
// add a 32nd (OCP Microscaling, v1.0).
double product_input(const Scenario& s, LayerKind kind) {
  const bool narrow =
      is_narrow(s.plan.dtype) && !kind.sixteen_bit && s.software.keeps_quantised_inputs;
  return narrow ? element_bytes(s.plan.dtype) : element(s);
}
bool quantises(const Scenario& s, LayerKind kind) { return product_input(s, kind) < element(s); }

// The same of products that `target` names: a frozen weight needs no gradient, an adapter keeps its
// input in 16 bits, and the mask of its dropout.
double kept_input(const Scenario& s, LayerKind kind, LoraTarget target) {
  if (s.plan.trains_weights()) return product_input(s, kind);
  if (!s.plan.adapts(target)) return 0.0;
  return element(s) + (s.plan.lora_dropout ? 1.0 : 0.0);
}

// Bytes of an element of an activation's input.
double activation_input(const Scenario& s, LayerKind kind) {
  const bool narrow =
      is_narrow(s.plan.dtype) && !kind.sixteen_bit && s.software.keeps_quantised_activations;
  if (s.plan.fp8_activation_inputs && is_narrow(s.plan.dtype)) return 1.0;
  return narrow ? element_bytes(s.plan.dtype) : element(s);
}

// Bytes of an element of queries, keys, values and the output, as attention keeps them.
double attended(const Scenario& s) {
  return s.plan.fp8_attention ? element_bytes(s.plan.dtype) : element(s);
}
// The output is also the projection's input. Both share one copy if both are quantised or neither,
// else there are two forms.
bool output_is_copied(const Scenario& s, LayerKind kind) {
  return s.plan.trains_weights() && quantises(s, kind) && !s.plan.fp8_attention;
}
// Bytes of a channel of that output in addition to attention's own copy.
double copied_output(const Scenario& s, LayerKind kind) {
  if (output_is_copied(s, kind)) return product_input(s, kind);
  return s.plan.adapts(LoraTarget::proj) && s.plan.lora_dropout
             ? kept_input(s, kind, LoraTarget::proj)
             : 0.0;
}
// Key/value heads whose tokens the tensor-parallel ranks keep together, copies of a head included.
std::int64_t kept_key_heads(const Scenario& s, const Model& layer) {
  const bool swaps = s.plan.cp > 1 && s.plan.cp_comm == ContextExchange::a2a;
  return std::max<std::int64_t>(layer.kv_heads, s.plan.tp * (swaps ? s.plan.cp : 1));
}

}  // namespace

bool alternates_products(const Scenario& s, const RecomputeChoice& recompute) {
  return recompute == Recompute::selective &&
         s.software.selective_recompute == SelectiveRecompute::alternate_products;
}

namespace {

// Queries, keys, values; the attention's output, which is the projection's input; latent attention
// also keeps the latents before and after their norms.
double attention_bytes(const Scenario& s, LayerKind kind, const RecomputeChoice& choice, double t) {
  const Model& layer = s.shape_of(kind);
  if (const auto& latent = layer.latent) {
    const auto down =
        static_cast<double>(2 * (latent->q_rank + latent->kv_rank) + latent->rope_dim);
    const bool up = !choice.selects(RecomputeModule::mla_up_proj);  // Else the output alone.
    const auto output = static_cast<double>(layer.heads * latent->v_dim);
    const auto wide = static_cast<double>(
        layer.heads * (up ? 2 * (layer.head_dim + latent->v_dim) : latent->v_dim));
    // Products' inputs in 8 bits: latents after their norms shrink, and the output is kept twice.
    const auto latents = static_cast<double>(latent->q_rank + latent->kv_rank);
    const double saved =
        (element(s) - kept_input(s, kind, LoraTarget::qkv)) * latents / (s.plan.sp ? t : 1.0);
    const double added = copied_output(s, kind) * output / t;
    return tokens(s) * (element(s) * down / (s.plan.sp ? t : 1.0) + attended(s) * wide / t - saved +
                        added + (layer.output_gate ? element(s) * 2.0 * output / t : 0.0));
  }
  const auto head_width = static_cast<double>(layer.heads * layer.head_dim);
  const auto output = static_cast<double>(layer.heads * value_width(layer));
  const auto key_heads = static_cast<double>(kept_key_heads(s, layer));
  const double kv_width = key_heads * static_cast<double>(layer.head_dim);
  const double value_channels = key_heads * static_cast<double>(value_width(layer));
  const double input = copied_output(s, kind) * output;
  const bool packed = s.software.keeps_packed_qkv && layer.kv_heads == layer.heads;
  const double copies = packed ? element(s) * 2.0 * kv_width : 0.0;
  // A gate, and the output before it.
  const double gate = layer.output_gate ? element(s) * 2.0 * output : 0.0;
  return tokens(s) *
         (attended(s) * (head_width + output + kv_width + value_channels) + input + copies + gate) /
         t;
}

// Input (both halves if gated) and output of an activation, for `rows` tokens.
double activation_sides(const Scenario& s, LayerKind kind, double rows, double width,
                        bool output = true) {
  const Model& layer = s.shape_of(kind);
  return rows * width *
         (activation_input(s, kind) * (layer.gated ? 2.0 : 1.0) + kept_by_activation(s, layer) +
          (output ? kept_input(s, kind, LoraTarget::fc2) : 0.0));
}

double experts_bytes(const Scenario& s, LayerKind kind, const RecomputeChoice& choice, double t,
                     double fullest) {
  if (choice.selects(RecomputeModule::moe)) return 0.0;  // Its input is a norm's output.
  const Model& layer = s.shape_of(kind);
  const Experts& experts = *layer.experts;
  const double own = own_tokens(s);
  const double rows = fullest * own * static_cast<double>(experts.per_token * s.plan.etp);
  // The returned rows are summed and freed: the router's weights were applied by the experts'
  // activation (Megatron Core, moe/experts.py, permuted_probs).
  const auto row = static_cast<double>(experts.channels(s.model.hidden));
  double sum = kept_input(s, kind, LoraTarget::fc1) * row * rows;
  // The products that lead to latent channels and back: the second one's input.
  if (experts.latent > 0 && s.plan.trains_weights()) sum += element(s) * row * own;
  sum += activation_sides(s, kind, rows, static_cast<double>(experts.ffn) / s.plan.etp,
                          !choice.selects(RecomputeModule::moe_act));
  // The clamped halves, next to the unclamped ones.
  if (layer.clamped_activation && !s.software.fused_experts &&
      !choice.selects(RecomputeModule::moe_act))
    sum += 2.0 * element(s) * rows * static_cast<double>(experts.ffn) / s.plan.etp;
  if (!choice.selects(RecomputeModule::shared_experts))
    sum += activation_sides(s, kind, tokens(s), static_cast<double>(experts.shared_ffn) / t);
  // Logits in fp32, and weights.
  return sum + (4.0 + element(s)) * own * static_cast<double>(experts.count);
}

}  // namespace

namespace {

// Bytes of a channel of the outputs of a layer's norms, `for_router` of which a router reads.
double norm_outputs(const Scenario& s, LayerKind kind, double norms, double for_router) {
  if (s.plan.trains_weights())
    return product_input(s, kind) * (norms - for_router) + element(s) * for_router;
  // The mixer's first, which a parallel block shares with its MLP.
  const Model& layer = s.shape_of(kind);
  const double mixer = has_mixer(layer) ? kept_input(s, kind, LoraTarget::qkv) : 0.0;
  const double dense =
      has_feed_forward(layer) && !kind.has_experts ? kept_input(s, kind, LoraTarget::fc1) : 0.0;
  return norms < 2.0 && layer.parallel_residual ? std::max(mixer, dense) : mixer + dense;
}

}  // namespace

Bytes layer_activations(const Scenario& s, const RecomputeChoice& recompute, LayerKind kind,
                        double fullest) {
  const Model& layer = s.shape_of(kind);
  const auto t = static_cast<double>(s.plan.tp);
  const double hidden = tokens(s) * static_cast<double>(s.model.hidden);  // s b h
  const double own = s.plan.sp ? hidden / t : hidden;
  if (recompute.kind == Recompute::full) return Bytes{element(s) * own};

  const double rows = tokens(s) * static_cast<double>(layer.heads) / t;
  if (alternates_products(s, recompute)) {
    // The layer's input; queries, values and attention's output with its log-sum-exp; the MLP's
    // first input, which without a gate is its activation's.
    const auto head_dim = static_cast<double>(layer.head_dim);
    const auto values = static_cast<double>(kept_key_heads(s, layer));
    const double wide = 2.0 * static_cast<double>(layer.heads) + values;
    return Bytes{element(s) * own + 4.0 * rows +
                 element(s) * tokens(s) * (wide * head_dim + static_cast<double>(layer.ffn)) / t};
  }

  const double dropout = s.software.dropout ? 1.0 : 0.0;
  // Two blocks, each with a norm, or two in parallel, which read the same input. Each keeps its
  // input, a mask byte for its residual dropout and the outputs of its norms.
  const double parts = (has_mixer(layer) ? 1.0 : 0.0) + (has_feed_forward(layer) ? 1.0 : 0.0);
  const double blocks = layer.parallel_residual ? 1.0 : parts;
  const double norms = layer.parallel_residual ? layer.norms_per_layer : parts;
  const double outputs = s.software.gathers_inputs_again ? own : hidden;
  double sum = own * blocks * (element(s) + dropout);
  if (layer.mixer)
    sum += tokens(s) * kept_by_state_mixer(LayerSizes{s, kind},
                                           kept_input(s, kind, LoraTarget::proj), element(s));
  if (layer.heads > 0) sum += attention_bytes(s, kind, recompute, t);
  // The router reads the second norm's output unquantised, products read that of all others.
  const double for_router = kind.has_experts ? 1.0 : 0.0;
  if (!recompute.selects(RecomputeModule::layernorm))
    sum +=
        norm_outputs(s, kind, norms, for_router) * outputs + norms * kept_by_norm(s, layer) * own;
  if (kind.has_experts)
    sum += experts_bytes(s, kind, recompute, t, fullest);
  else if (layer.ffn > 0 && !recompute.selects(RecomputeModule::mlp))
    sum += activation_sides(s, kind, tokens(s), static_cast<double>(layer.ffn) / t);
  if (layer.heads == 0) return Bytes{sum};
  if (s.plan.fused_attention)
    sum += 4.0 * rows;  // One fp32 log-sum-exp a query and head.
  else if (!recompute.selects(RecomputeModule::core_attn))
    // Softmax output; its dropout's mask and output.
    sum += rows * static_cast<double>(s.plan.seq) * (element(s) + (1.0 + element(s)) * dropout);
  return Bytes{sum};
}

namespace {

// The parts of layer_activations() that attention keeps, of latent attention without what its
// up-projections compute again.
double offloaded_of_attention(const Scenario& s, LayerKind kind) {
  using enum OffloadModule;
  const Model& layer = s.shape_of(kind);
  if (layer.heads == 0) return 0.0;
  const RecomputeChoice& again = s.plan.recompute;
  const auto t = static_cast<double>(s.plan.tp);
  const double hidden = tokens(s) * static_cast<double>(s.model.hidden);
  const double own = own_tokens(s) * static_cast<double>(s.model.hidden);
  double sum = 0.0;
  if (s.plan.offloads(attn_norm)) sum += element(s) * own;
  if (s.plan.offloads(qkv_linear) && !again.selects(RecomputeModule::layernorm))
    sum += product_input(s, kind) * (s.software.gathers_inputs_again ? own : hidden);
  const auto heads = static_cast<double>(layer.heads);
  const double key_heads = layer.latent ? heads : static_cast<double>(kept_key_heads(s, layer));
  const auto keys = static_cast<double>(layer.head_dim);
  const auto values = static_cast<double>(layer.latent ? layer.latent->v_dim : value_width(layer));
  const bool computed_again = layer.latent && again.selects(RecomputeModule::mla_up_proj);
  if (s.plan.offloads(core_attn) && !computed_again)
    sum += tokens(s) * attended(s) * (heads * keys + key_heads * (keys + values)) / t;
  if (s.plan.offloads(attn_proj))
    sum += tokens(s) * heads * values / t *
           (attended(s) + (output_is_copied(s, kind) ? product_input(s, kind) : 0.0));
  return sum;
}

double offloaded_of_experts(const Scenario& s, LayerKind kind, double fullest) {
  using enum OffloadModule;
  if (!kind.has_experts) return 0.0;
  const Experts& experts = *s.shape_of(kind).experts;
  const double rows = fullest * own_tokens(s) * static_cast<double>(experts.per_token * s.plan.etp);
  const auto row = static_cast<double>(experts.channels(s.model.hidden));
  const double width = static_cast<double>(experts.ffn) / s.plan.etp;
  double sum = 0.0;
  if (s.plan.offloads(expert_fc1) || s.plan.offloads(fused_group_mlp))
    sum += product_input(s, kind) * row * rows;
  if (s.plan.offloads(moe_act)) sum += activation_sides(s, kind, rows, width, false);
  if (s.plan.offloads(fused_group_mlp))
    sum +=
        activation_sides(s, kind, rows, width, !s.plan.recompute.selects(RecomputeModule::moe_act));
  return sum;
}

}  // namespace

Bytes offloaded_activations(const Scenario& s, LayerKind kind, double fullest) {
  if (s.plan.offload_modules.empty()) return {};
  double sum = offloaded_of_attention(s, kind) + offloaded_of_experts(s, kind, fullest);
  if (s.plan.offloads(OffloadModule::mlp_norm) && has_feed_forward(s.shape_of(kind)))
    sum += element(s) * own_tokens(s) * static_cast<double>(s.model.hidden);
  return Bytes{sum};
}

Bytes activations_on_host(const Scenario& s, int virtual_stage) {
  Bytes sum;
  const int first = s.first_layer(virtual_stage);
  const int layers = s.layers_of[static_cast<std::size_t>(virtual_stage)];
  for (int layer = first; layer < first + layers; ++layer)
    sum += layer < s.plan.offload_layers ? layer_activations(s, s.plan.recompute, s.kind_of(layer))
                                         : offloaded_activations(s, s.kind_of(layer));
  if (virtual_stage == s.plan.virtual_stages() - 1)
    for (int i = 0; i < s.model.prediction_layers; ++i)
      for (const LayerKind kind : s.prediction_kinds()) sum += offloaded_activations(s, kind);
  return sum;
}

Seconds host_copies(const Scenario& scenario, int virtual_stage) {
  if (!scenario.plan.offloads_activations()) return {};
  return activations_on_host(scenario, virtual_stage) / scenario.system.gpu.host;
}

void wait_for_host_copies(const Scenario& scenario, int virtual_stage, StageCost& cost) {
  const Seconds copy = host_copies(scenario, virtual_stage);
  if (copy == Seconds{}) return;
  for (const bool forward : {true, false}) {
    Seconds computed;
    for (std::size_t i = 0; i < cost.count(forward); ++i) {
      const Bucket& bucket = cost.bucket(forward, i);
      computed += (forward ? bucket.forward : bucket.backward).time();
    }
    if (copy <= computed) continue;
    Bucket& waits = cost.bucket(forward, forward ? cost.count(true) - 1 : 0);
    (forward ? waits.forward : waits.backward)
        .append(waiting(copy - computed, "wait for host copies"));
  }
}

}  // namespace orrery
