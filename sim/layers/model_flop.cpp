#include "sim/layers/model_flop.hpp"

#include <algorithm>

#include "sim/kernels/attention_time.hpp"

namespace orrery {

// Forward flop of a sequence of s tokens: 2 s per weight of a matrix, and 4 s^2 a d per layer for
// scores and values (half of it where the causal mask is counted). A layer with a window w counts
// 4 s w a d without the causal mask, and with it the keys that its queries see. The embedding is a
// look-up; the output head is a matrix. Of routed experts those count that a token visits; a
// prediction layer counts as a layer, its joint projection and another head. Backward is twice
// forward (Narayanan et al., arXiv 2104.04473, appendix;
// the causal half as Megatron-LM's num_floating_point_operations counts).
namespace {

double attention_weights(const Model& model) {
  const auto hidden = static_cast<double>(model.hidden);
  const auto heads = static_cast<double>(model.heads);
  if (const auto& latent = model.latent) {
    const auto q = static_cast<double>(latent->q_rank);
    const auto kv = static_cast<double>(latent->kv_rank);
    const auto rope = static_cast<double>(latent->rope_dim);
    const double query = heads * static_cast<double>(latent->nope_dim + latent->rope_dim);
    const double key_value = heads * static_cast<double>(latent->nope_dim + latent->v_dim);
    return (q > 0 ? (hidden + query) * q : hidden * query) + hidden * (kv + rope) + kv * key_value +
           heads * static_cast<double>(latent->v_dim) * hidden;
  }
  return 2.0 * hidden * static_cast<double>((model.heads + model.kv_heads) * model.head_dim);
}

double mlp_weights(const Model& model, bool experts) {
  const double matrices = (model.gated ? 3.0 : 2.0) * static_cast<double>(model.hidden);
  if (!experts) return matrices * static_cast<double>(model.ffn);
  const Experts& e = *model.experts;
  return matrices * static_cast<double>(e.per_token * e.ffn + e.shared_ffn) +
         static_cast<double>(model.hidden * e.count);
}

}  // namespace

Flop model_flop(const Model& model, std::int64_t sequences, std::int64_t sequence, bool causal) {
  const auto hidden = static_cast<double>(model.hidden);
  const auto tokens = static_cast<double>(sequence);
  const double head = hidden * static_cast<double>(model.vocab);
  const double score_and_value = static_cast<double>(
      model.heads * (model.head_dim + (model.latent ? model.latent->v_dim : model.head_dim)));
  double weights = head;
  double core = 0.0;
  for (int layer = 0; layer < model.layers + model.prediction_layers; ++layer) {
    const auto like = static_cast<std::size_t>(std::min(layer, model.layers - 1));
    const bool experts = !model.layer_has_experts.empty() && model.layer_has_experts[like];
    weights += attention_weights(model) + mlp_weights(model, experts);
    if (layer >= model.layers) weights += 2.0 * hidden * hidden + head;
    const bool local =
        !model.layer_is_local.empty() && model.layer_is_local[like] && model.window > 0;
    const AttentionShape mask{
        .seq_q = sequence, .seq_kv = sequence, .window = local ? model.window : 0};
    const double whole = local ? std::min(tokens, static_cast<double>(model.window)) : tokens;
    const double keys = causal ? attention_keys(mask) / 2.0 : whole;
    core += 2.0 * tokens * keys * score_and_value;
  }
  return Flop{3.0 * static_cast<double>(sequences) * (2.0 * tokens * weights + core)};
}

}  // namespace orrery
