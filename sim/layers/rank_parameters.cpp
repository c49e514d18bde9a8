#include "sim/layers/rank_parameters.hpp"

#include <algorithm>
#include <utility>

#include "sim/layers/adapters.hpp"
#include "sim/layers/layer_parts.hpp"
#include "sim/model/layer_pattern.hpp"

namespace orrery {
namespace {

std::int64_t mixer_on_rank(const LayerSizes& s) {
  std::int64_t sum = 0;
  if (s.model.mixer) {
    const StateWork work = *s.model.mixer->work(s.hidden, s.plan.tp);
    sum += work.vectors + work.output * s.hidden;
    for (const std::int64_t width : work.inputs) sum += width * s.hidden;
    for (const WeightMatrix& matrix : work.inner) sum += matrix.in * matrix.out;
  }
  if (s.model.heads == 0) return sum;
  if (const auto& latent = s.model.latent) {
    const std::int64_t query_width = s.heads * (latent->nope_dim + latent->rope_dim);
    const std::int64_t queries = latent->q_rank == 0 ? s.hidden * query_width
                                                     : s.hidden * latent->q_rank + latent->q_rank +
                                                           latent->q_rank * query_width;
    const std::int64_t gate = s.model.output_gate ? s.hidden * s.head_width : 0;
    return sum + gate + queries + s.hidden * (latent->kv_rank + latent->rope_dim) +
           latent->kv_rank + latent->kv_rank * s.heads * (latent->nope_dim + latent->v_dim) +
           s.head_width * s.hidden;
  }
  const std::int64_t qkv = sum_of(s.qkv_products());
  sum += s.hidden * qkv + s.head_width * s.hidden;
  if (s.model.qkv_bias) sum += qkv;
  if (s.model.out_bias) sum += s.hidden;
  if (s.model.qk_norm) sum += 2 * s.model.head_dim;
  return sum;
}

// Parameters of an MLP with `width` channels on the rank.
std::int64_t mlp_on_rank(const LayerSizes& s, std::int64_t channels, std::int64_t width) {
  if (width == 0) return 0;
  const std::int64_t into = s.model.gated ? 2 : 1;
  return (into + 1) * channels * width + (s.model.mlp_bias ? into * width + channels : 0);
}

void add_weights(const LayerSizes& s, LayerKind kind, RankParameters& sum) {
  sum.dense += mixer_on_rank(s) + s.model.norms_per_layer * norm_parameters(s.model, s.hidden);
  if (!kind.has_experts) {
    sum.dense += mlp_on_rank(s, s.hidden, s.ffn);
    return;
  }
  const Experts& experts = *s.model.experts;
  sum.dense += mlp_on_rank(s, s.hidden, experts.shared_ffn / s.plan.tp) + s.hidden * experts.count;
  if (experts.shared_gate) sum.dense += s.hidden;
  sum.dense += 2 * s.hidden * experts.latent;
  if (experts.latent_norm) sum.dense += experts.latent;
  if (s.model.mlp_bias) sum.dense += experts.count;
  sum.experts += experts.count / s.plan.ep *
                 mlp_on_rank(s, experts.channels(s.hidden), experts.ffn / s.plan.etp);
}

// Norms and vectors are so few that they count as linear layers.
void add_layer(const LayerSizes& s, LayerKind kind, RankParameters& sum) {
  add_weights(s, kind, sum);
  if (s.plan.trains_weights()) return;
  const AdapterParameters adapters = adapter_parameters(s, kind.has_experts);
  sum = {adapters.dense, adapters.experts, {sum.dense, sum.experts, 0}};
}

}  // namespace

int weight_tensors(const Scenario& scenario, int virtual_stage) {
  const Model& model = scenario.model;
  const bool fused = scenario.software.fused_projections;
  int sum = 0;
  const int first = scenario.first_layer(virtual_stage);
  for (int l = 0; l < scenario.layers_of[static_cast<std::size_t>(virtual_stage)]; ++l) {
    const Model& layer = scenario.shape_of(scenario.kind_of(first + l));
    sum += layer.norms_per_layer;
    if (layer.mixer) sum += 2;
    if (layer.heads > 0) sum += (fused ? 1 : 3) + 1;
    if (has_feed_forward(layer)) sum += (layer.gated && !fused ? 2 : 1) + 1;
  }
  if (virtual_stage == 0) sum += 1;
  if (virtual_stage == scenario.plan.virtual_stages() - 1)
    sum += 1 + (!scenario.plan.joins_ends() || !model.tied_embeddings ? 1 : 0);
  return sum;
}

namespace {

class PartsOfStages {
 public:
  explicit PartsOfStages(const Scenario& scenario) : scenario_{scenario}, sizes_{scenario} {
    if (!scenario.model.pattern) {
      layer_.resize(2);
      add_layer(sizes_, LayerKind::dense, layer_[0]);
      if (scenario.model.experts) add_layer(sizes_, LayerKind::experts, layer_[1]);
      return;
    }
    const std::vector<Model>& shapes = scenario.model.pattern->shapes;
    layer_.resize(2 * shapes.size());
    for (std::size_t shape = 0; shape < shapes.size(); ++shape) {
      const LayerKind kind{shapes[shape].experts.has_value(), 0, false, static_cast<int>(shape)};
      add_layer(LayerSizes{scenario, kind}, kind, layer_[index(kind)]);
    }
  }

  StageParts parts(int virtual_stage, int first_layer) const {
    StageParts parts = ends(virtual_stage);
    const int layers = scenario_.layers_of[static_cast<std::size_t>(virtual_stage)];
    for (int l = first_layer; l < first_layer + layers; ++l)
      parts.layers.push_back(layer_[index(scenario_.kind_of(l))]);
    return parts;
  }

  RankParameters sum(int virtual_stage, int first_layer) const {
    const Model& model = scenario_.model;
    const int layers = scenario_.layers_of[static_cast<std::size_t>(virtual_stage)];
    const StageParts parts = ends(virtual_stage);
    RankParameters sum = parts.prediction;
    sum += parts.embedding;
    sum += parts.head;
    if (model.pattern) {
      for (int l = first_layer; l < first_layer + layers; ++l)
        sum += layer_[index(scenario_.kind_of(l))];
      return sum;
    }
    const auto experts = static_cast<int>(
        std::count_if(model.layer_has_experts.begin() + (model.experts ? first_layer : 0),
                      model.layer_has_experts.begin() + (model.experts ? first_layer + layers : 0),
                      [](bool has) { return has; }));
    for (const auto& [layer, count] :
         {std::pair{layer_[0], layers - experts}, std::pair{layer_[1], experts}}) {
      sum.dense += count * layer.dense;
      sum.experts += count * layer.experts;
      sum.frozen.dense += count * layer.frozen.dense;
      sum.frozen.experts += count * layer.frozen.experts;
    }
    return sum;
  }

 private:
  static std::size_t index(LayerKind kind) {
    return 2 * static_cast<std::size_t>(kind.shape) + (kind.has_experts ? 1 : 0);
  }
  // The parts outside of the layers.
  StageParts ends(int virtual_stage) const {
    const LayerSizes& s = sizes_;
    const Model& model = scenario_.model;
    const std::int64_t norm = norm_parameters(model, s.hidden);
    const int last = scenario_.plan.virtual_stages() - 1;
    const std::int64_t table = s.vocab * s.hidden;
    StageParts parts;
    const auto of_table = [&](std::int64_t parameters) {
      return s.plan.trains_tables() ? RankParameters{parameters, 0}
                                    : RankParameters{0, 0, {0, 0, parameters}};
    };
    if (virtual_stage == 0) parts.embedding = of_table(table + model.learned_positions * s.hidden);
    if (virtual_stage != last) return parts;
    // A tied head is the same tensor if both ends share a stage, and else a copy.
    const bool apart = !scenario_.plan.joins_ends();
    parts.head = of_table(norm + (apart || !model.tied_embeddings ? table : 0));
    // A prediction layer: norms of its two inputs and of its output, their joint projection, a
    // layer of the last one's kind. It uses the model's head, and a copy of the embedding unless
    // the rank holds that, as DualPipe's first and last do (DeepSeek-V3, arXiv 2412.19437, section
    // 3.2.3).
    const int modules =
        model.prediction_repeats ? std::min(1, model.prediction_layers) : model.prediction_layers;
    for (int i = 0; i < modules; ++i) {
      parts.prediction += of_table(3 * norm + 2 * s.hidden * s.hidden / scenario_.plan.tp);
      for (const LayerKind kind : scenario_.prediction_kinds())
        parts.prediction += layer_[index(kind)];
    }
    if (model.prediction_layers > 0 && !scenario_.plan.holds(0, last))
      parts.prediction += of_table(table);
    return parts;
  }

  const Scenario& scenario_;
  LayerSizes sizes_;
  std::vector<RankParameters> layer_;  // Of each shape without experts, and with them.
};

}  // namespace

RankParameters gathered(const Scenario& scenario, const RankParameters& held) {
  const FrozenParameters& frozen = held.frozen;
  if (frozen.sum() == 0) return held;
  const double linear = stored_bytes(scenario.plan.base_format) / scenario.software.weight_bytes;
  const double others = unquantised_bytes(scenario.plan.dtype) / scenario.software.weight_bytes;
  const auto count = [](double parameters) { return static_cast<std::int64_t>(parameters); };
  return {held.dense + count(linear * static_cast<double>(frozen.dense) +
                             others * static_cast<double>(frozen.others)),
          held.experts + count(linear * static_cast<double>(frozen.experts))};
}

StageParts parts_on_rank(const Scenario& scenario, int virtual_stage) {
  return PartsOfStages{scenario}.parts(virtual_stage, scenario.first_layer(virtual_stage));
}

RankParameters parameters_on_rank(const Scenario& scenario, int virtual_stage) {
  return PartsOfStages{scenario}.sum(virtual_stage, scenario.first_layer(virtual_stage));
}

std::vector<RankParameters> parameters_by_stage(const Scenario& scenario) {
  const PartsOfStages parts{scenario};
  std::vector<RankParameters> all;
  all.reserve(scenario.layers_of.size());
  int first_layer = 0;
  for (std::size_t stage = 0; stage < scenario.layers_of.size(); ++stage) {
    all.push_back(parts.sum(static_cast<int>(stage), first_layer));
    first_layer += scenario.layers_of[stage];
  }
  return all;
}

}  // namespace orrery
