#include "sim/layers/layer_activations.hpp"

#include <algorithm>

#include "sim/layers/op_work.hpp"

namespace orrery {
namespace {

double tokens(const Scenario& s) { return static_cast<double>(s.tokens_per_microbatch()); }

// Bytes of an element of tensors that are kept unquantised.
double element(const Scenario& s) { return unquantised_bytes(s.plan.dtype); }

// Bytes of an element that a product keeps of its input for its weight gradient. Scales of blocks
// add a 32nd (OCP Microscaling, v1.0).
double product_input(const Scenario& s) {
  const bool narrow = is_narrow(s.plan.dtype) && s.software.keeps_quantised_inputs;
  return narrow ? element_bytes(s.plan.dtype) : element(s);
}
bool quantises(const Scenario& s) { return product_input(s) < element(s); }

// Bytes of an element of an activation's input.
double activation_input(const Scenario& s) {
  const bool narrow = is_narrow(s.plan.dtype) && s.software.keeps_quantised_activations;
  return narrow ? element_bytes(s.plan.dtype) : element(s);
}

// Bytes of an element of queries, keys, values and the output, as attention keeps them.
double attended(const Scenario& s) {
  return s.plan.fp8_attention ? element_bytes(s.plan.dtype) : element(s);
}
// The output is also the projection's input. Both share one copy if both are quantised or neither,
// else there are two forms.
bool output_is_copied(const Scenario& s) { return quantises(s) && !s.plan.fp8_attention; }
// Key/value heads whose tokens the tensor-parallel ranks keep together, copies of a head included.
std::int64_t kept_key_heads(const Scenario& s) {
  const bool swaps = s.plan.cp > 1 && s.plan.cp_comm == ContextExchange::a2a;
  return std::max<std::int64_t>(s.model.kv_heads, s.plan.tp * (swaps ? s.plan.cp : 1));
}

}  // namespace

bool alternates_products(const Scenario& s, const RecomputeChoice& recompute) {
  return recompute == Recompute::selective &&
         s.software.selective_recompute == SelectiveRecompute::alternate_products;
}

namespace {

// Queries, keys, values; the attention's output, which is the projection's input; latent attention
// also keeps the latents before and after their norms.
double attention_bytes(const Scenario& s, const RecomputeChoice& choice, double t) {
  if (const auto& latent = s.model.latent) {
    const auto down =
        static_cast<double>(2 * (latent->q_rank + latent->kv_rank) + latent->rope_dim);
    const bool up = !choice.selects(RecomputeModule::mla_up_proj);  // Else the output alone.
    const auto output = static_cast<double>(s.model.heads * latent->v_dim);
    const auto wide = static_cast<double>(
        s.model.heads * (up ? 2 * (s.model.head_dim + latent->v_dim) : latent->v_dim));
    // Products' inputs in 8 bits: latents after their norms shrink, and the output is kept twice.
    const auto latents = static_cast<double>(latent->q_rank + latent->kv_rank);
    const double saved = (element(s) - product_input(s)) * latents / (s.plan.sp ? t : 1.0);
    const double added = output_is_copied(s) ? product_input(s) * output / t : 0.0;
    return tokens(s) *
           (element(s) * down / (s.plan.sp ? t : 1.0) + attended(s) * wide / t - saved + added);
  }
  const double head_width = static_cast<double>(s.model.heads * s.model.head_dim);
  const auto kv_width = static_cast<double>(kept_key_heads(s) * s.model.head_dim);
  const double input = output_is_copied(s) ? product_input(s) * head_width : 0.0;
  const bool packed = s.software.keeps_packed_qkv && s.model.kv_heads == s.model.heads;
  const double copies = packed ? element(s) * 2.0 * kv_width : 0.0;
  return tokens(s) * (attended(s) * (2.0 * head_width + 2.0 * kv_width) + input + copies) / t;
}

// Input (both halves if gated) and output of an activation, for `rows` tokens.
double activation_sides(const Scenario& s, double rows, double width, bool output = true) {
  return rows * width *
         (activation_input(s) * (s.model.gated ? 2.0 : 1.0) + kept_by_activation(s) +
          (output ? product_input(s) : 0.0));
}

double experts_bytes(const Scenario& s, const RecomputeChoice& choice, double t, double fullest) {
  if (choice.selects(RecomputeModule::moe)) return 0.0;  // Its input is a norm's output.
  const Experts& experts = *s.model.experts;
  const double own = tokens(s) / (s.plan.sp ? t : 1.0);
  const double rows = fullest * own * static_cast<double>(experts.per_token * s.plan.etp);
  // The returned rows are summed and freed: the router's weights were applied by the experts'
  // activation (Megatron Core, moe/experts.py, permuted_probs).
  double sum = product_input(s) * static_cast<double>(s.model.hidden) * rows;
  sum += activation_sides(s, rows, static_cast<double>(experts.ffn) / s.plan.etp,
                          !choice.selects(RecomputeModule::moe_act));
  // The clamped halves, next to the unclamped ones.
  if (s.model.clamped_activation && !s.software.fused_experts &&
      !choice.selects(RecomputeModule::moe_act))
    sum += 2.0 * element(s) * rows * static_cast<double>(experts.ffn) / s.plan.etp;
  if (!choice.selects(RecomputeModule::shared_experts))
    sum += activation_sides(s, tokens(s), static_cast<double>(experts.shared_ffn) / t);
  // Logits in fp32, and weights.
  return sum + (4.0 + element(s)) * own * static_cast<double>(experts.count);
}

}  // namespace

Bytes layer_activations(const Scenario& s, const RecomputeChoice& recompute, LayerKind kind,
                        double fullest) {
  const auto t = static_cast<double>(s.plan.tp);
  const double hidden = tokens(s) * static_cast<double>(s.model.hidden);  // s b h
  const double own = s.plan.sp ? hidden / t : hidden;
  if (recompute.kind == Recompute::full) return Bytes{element(s) * own};

  const double rows = tokens(s) * static_cast<double>(s.model.heads) / t;
  if (alternates_products(s, recompute)) {
    // The layer's input; queries, values and attention's output with its log-sum-exp; the MLP's
    // first input, which without a gate is its activation's.
    const auto head_dim = static_cast<double>(s.model.head_dim);
    const auto values = static_cast<double>(kept_key_heads(s));
    const double wide = 2.0 * static_cast<double>(s.model.heads) + values;
    return Bytes{element(s) * own + 4.0 * rows +
                 element(s) * tokens(s) * (wide * head_dim + static_cast<double>(s.model.ffn)) / t};
  }

  const double dropout = s.software.dropout ? 1.0 : 0.0;
  // Two blocks, each with a norm, or two in parallel, which read the same input. Each keeps its
  // input, a mask byte for its residual dropout and the outputs of its norms.
  const double blocks = s.model.parallel_residual ? 1.0 : 2.0;
  const double norms = s.model.parallel_residual ? s.model.norms_per_layer : 2.0;
  const double outputs = s.software.gathers_inputs_again ? own : hidden;
  double sum = own * blocks * (element(s) + dropout) + attention_bytes(s, recompute, t);
  // The router reads the second norm's output unquantised, products read that of all others.
  const double for_router = kind.has_experts ? 1.0 : 0.0;
  if (!recompute.selects(RecomputeModule::layernorm))
    sum += (product_input(s) * (norms - for_router) + element(s) * for_router) * outputs +
           norms * kept_by_norm(s) * own;
  if (kind.has_experts)
    sum += experts_bytes(s, recompute, t, fullest);
  else if (!recompute.selects(RecomputeModule::mlp))
    sum += activation_sides(s, tokens(s), static_cast<double>(s.model.ffn) / t);
  if (s.plan.fused_attention)
    sum += 4.0 * rows;  // One fp32 log-sum-exp a query and head.
  else if (!recompute.selects(RecomputeModule::core_attn))
    // Softmax output; its dropout's mask and output.
    sum += rows * static_cast<double>(s.plan.seq) * (element(s) + (1.0 + element(s)) * dropout);
  return Bytes{sum};
}

Bytes activations_on_host(const Scenario& s) {
  Bytes sum;
  for (int layer = 0; layer < s.plan.offload_layers; ++layer)
    sum += layer_activations(s, s.plan.recompute, s.kind_of(layer));
  return sum;
}

Seconds host_copies(const Scenario& scenario) {
  if (scenario.plan.offload_layers == 0) return {};
  return activations_on_host(scenario) / scenario.system.gpu.host;
}

void wait_for_host_copies(const Scenario& scenario, StageCost& cost) {
  const Seconds copy = host_copies(scenario);
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
