#include "sim/cost/operations/rank_parameters.hpp"

#include "sim/cost/operations/layer_parts.hpp"

namespace orrery {
namespace {

std::int64_t attention_on_rank(const LayerSizes& s) {
  if (const auto& latent = s.model.latent) {
    const std::int64_t query_width = s.heads * (latent->nope_dim + latent->rope_dim);
    const std::int64_t queries = latent->q_rank == 0 ? s.hidden * query_width
                                                     : s.hidden * latent->q_rank + latent->q_rank +
                                                           latent->q_rank * query_width;
    return queries + s.hidden * (latent->kv_rank + latent->rope_dim) + latent->kv_rank +
           latent->kv_rank * s.heads * (latent->nope_dim + latent->v_dim) + s.head_width * s.hidden;
  }
  std::int64_t sum = s.hidden * s.qkv + s.head_width * s.hidden;
  if (s.model.qkv_bias) sum += s.qkv;
  if (s.model.out_bias) sum += s.hidden;
  if (s.model.qk_norm) sum += 2 * s.model.head_dim;
  return sum;
}

// An MLP of which a rank holds `width` channels.
std::int64_t mlp_on_rank(const LayerSizes& s, std::int64_t width) {
  if (width == 0) return 0;
  const std::int64_t into = s.model.gated ? 2 : 1;
  return (into + 1) * s.hidden * width + (s.model.mlp_bias ? into * width + s.hidden : 0);
}

void add_layer(const LayerSizes& s, LayerKind kind, RankParameters& sum) {
  sum.dense += attention_on_rank(s) + s.model.norms_per_layer * norm_parameters(s.model, s.hidden);
  if (!kind.has_experts) {
    sum.dense += mlp_on_rank(s, s.ffn);
    return;
  }
  const Experts& experts = *s.model.experts;
  sum.dense += mlp_on_rank(s, experts.shared_ffn / s.plan.tp) + s.hidden * experts.count;
  if (s.model.mlp_bias) sum.dense += experts.count;
  sum.experts += experts.count / s.plan.ep * mlp_on_rank(s, experts.ffn / s.plan.etp);
}

}  // namespace

int weight_tensors(const Scenario& scenario, int virtual_stage) {
  const Model& model = scenario.model;
  const bool fused = scenario.software.fused_projections;
  const int products = (fused ? 1 : 3) + 1 + (model.gated && !fused ? 2 : 1) + 1;
  int sum = scenario.layers_of[static_cast<std::size_t>(virtual_stage)] *
            (products + model.norms_per_layer);
  if (virtual_stage == 0) sum += 1;
  if (virtual_stage == scenario.plan.virtual_stages() - 1)
    sum += 1 + (!scenario.plan.joins_ends() || !model.tied_embeddings ? 1 : 0);
  return sum;
}

StageParts parts_on_rank(const Scenario& scenario, int virtual_stage) {
  const LayerSizes s{scenario};
  const Model& model = scenario.model;
  const int last = scenario.plan.virtual_stages() - 1;
  const std::int64_t table = s.vocab * s.hidden;
  RankParameters layer;
  add_layer(s, LayerKind::dense, layer);
  StageParts parts;
  parts.layer = layer.dense;
  if (virtual_stage == 0) parts.embedding = table + model.learned_positions * s.hidden;
  if (virtual_stage == last)
    parts.head = norm_parameters(model, s.hidden) +
                 (!scenario.plan.joins_ends() || !model.tied_embeddings ? table : 0);
  return parts;
}

RankParameters parameters_on_rank(const Scenario& scenario, int virtual_stage) {
  const LayerSizes s{scenario};
  const Model& model = scenario.model;
  const std::int64_t norm = norm_parameters(model, s.hidden);
  const int last = scenario.plan.virtual_stages() - 1;
  RankParameters sum;
  const int first_layer = scenario.first_layer(virtual_stage);
  const int layers = scenario.layers_of[static_cast<std::size_t>(virtual_stage)];
  int of_kind[2] = {0, 0};
  for (int layer = first_layer; layer < first_layer + layers; ++layer)
    ++of_kind[scenario.kind_of(layer).has_experts];
  for (LayerKind kind : {LayerKind::dense, LayerKind::experts}) {
    const int count = of_kind[kind.has_experts];
    if (count == 0) continue;
    RankParameters layer;
    add_layer(s, kind, layer);
    sum.dense += count * layer.dense;
    sum.experts += count * layer.experts;
  }
  const std::int64_t table = s.vocab * s.hidden;
  if (virtual_stage == 0) sum.dense += table + model.learned_positions * s.hidden;
  if (virtual_stage != last) return sum;
  sum.dense += norm;
  // A tied head is the same tensor where both ends share a stage, and a copy where they do not.
  const bool apart = !scenario.plan.joins_ends();
  if (apart || !model.tied_embeddings) sum.dense += table;
  // A prediction layer: norms of its two inputs and of its output, their joint projection, a layer
  // of the last one's kind. It uses the model's head, and a copy of the embedding unless the rank
  // holds that, as DualPipe's first and last do (DeepSeek-V3, arXiv 2412.19437, section 3.2.3).
  for (int i = 0; i < model.prediction_layers; ++i) {
    sum.dense += 3 * norm + 2 * s.hidden * s.hidden / scenario.plan.tp;
    add_layer(s, scenario.kind_of(model.layers - 1), sum);
  }
  if (model.prediction_layers > 0 && !scenario.plan.holds(0, last)) sum.dense += table;
  return sum;
}

}  // namespace orrery
