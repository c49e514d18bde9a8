// Parameter counts of a decoder-only transformer, h hidden, n heads, k key/value heads, d head_dim:
//
//   attention   h n d + 2 h k d + n d h               biases n d + 2 k d and h, q/k norms 2 d
//   latent      h r_q + r_q + r_q n (d_n + d_r)       queries, with the norm of their r_q channels
//             + h (r_kv + d_r) + r_kv + r_kv n (d_n + d_v) + n d_v h
//   MLP         3 h f gated, 2 h f otherwise          biases 2 f + h or f + h
//   experts     E MLPs + one MLP of the shared width + router h E + E correction biases
//   total       layers + final norm + V h, once more for an untied head, + learned positions
//
// Source: the published totals of sixteen models, which this gives to the last parameter
// (parameters_test.cpp); latent attention is DeepSeek-V2's, arXiv 2405.04434.
#include <cassert>

#include "sim/model/model.hpp"

namespace orrery {
namespace {

std::int64_t latent_attention_parameters(const Model& model, const LatentAttention& latent) {
  const std::int64_t query_width = model.heads * (latent.nope_dim + latent.rope_dim);
  const std::int64_t queries = latent.q_rank == 0 ? model.hidden * query_width
                                                  : model.hidden * latent.q_rank + latent.q_rank +
                                                        latent.q_rank * query_width;
  const std::int64_t keys_and_values =
      model.hidden * (latent.kv_rank + latent.rope_dim) + latent.kv_rank +
      latent.kv_rank * model.heads * (latent.nope_dim + latent.v_dim);
  return queries + keys_and_values + model.heads * latent.v_dim * model.hidden;
}

std::int64_t one_mlp(const Model& model, std::int64_t width) {
  if (width == 0) return 0;
  const std::int64_t into = model.gated ? 2 : 1;
  const std::int64_t biases = model.mlp_bias ? into * width + model.hidden : 0;
  return (into + 1) * model.hidden * width + biases;
}

// Router, shared and `routed` of the routed experts.
std::int64_t experts_parameters(const Model& model, const Experts& experts, std::int64_t routed) {
  const std::int64_t router_biases =
      (experts.correction_bias ? experts.count : 0) + (model.mlp_bias ? experts.count : 0);
  return routed * one_mlp(model, experts.ffn) + one_mlp(model, experts.shared_ffn) +
         model.hidden * experts.count + router_biases;
}

bool has_experts(const Model& model, int layer) {
  return !model.layer_has_experts.empty() &&
         model.layer_has_experts.at(static_cast<std::size_t>(layer));
}

}  // namespace

std::int64_t attention_parameters(const Model& model) {
  if (model.latent) return latent_attention_parameters(model, *model.latent);
  const std::int64_t query_width = model.heads * model.head_dim;
  const std::int64_t kv_width = 2 * model.kv_heads * model.head_dim;
  std::int64_t count = model.hidden * (query_width + kv_width) + query_width * model.hidden;
  if (model.qkv_bias) count += query_width + kv_width;
  if (model.out_bias) count += model.hidden;
  if (model.qk_norm) count += 2 * model.head_dim;
  if (model.attention_sinks) count += model.heads;
  return count;
}

std::int64_t mlp_parameters(const Model& model, int layer) {
  assert(0 <= layer && layer < model.layers);
  if (!has_experts(model, layer)) return one_mlp(model, model.ffn);
  assert(model.experts);
  return experts_parameters(model, *model.experts, model.experts->count);
}

std::int64_t norm_parameters(const Model& model, std::int64_t width) {
  return model.norm_bias ? 2 * width : width;
}

ParameterCount count_parameters(const Model& model) {
  ParameterCount count;
  count.embedding = (model.vocab + model.learned_positions) * model.hidden;
  count.head = model.tied_embeddings ? 0 : model.vocab * model.hidden;
  count.final_norm = norm_parameters(model, model.hidden);
  count.total = count.active = count.embedding + count.head + count.final_norm;
  const std::int64_t attention_and_norms =
      attention_parameters(model) + model.norms_per_layer * norm_parameters(model, model.hidden);
  for (int layer = 0; layer < model.layers; ++layer) {
    const std::int64_t all = attention_and_norms + mlp_parameters(model, layer);
    count.layers.push_back(all);
    count.total += all;
    count.active += has_experts(model, layer)
                        ? attention_and_norms +
                              experts_parameters(model, *model.experts, model.experts->per_token)
                        : all;
  }
  return count;
}

}  // namespace orrery
