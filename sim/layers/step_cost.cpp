#include "sim/layers/step_cost.hpp"

#include <algorithm>
#include <cmath>

#include "sim/kernels/attention_time.hpp"
#include "sim/kernels/scan_time.hpp"
#include "sim/layers/contention.hpp"
#include "sim/layers/layer_activations.hpp"
#include "sim/layers/layer_ops.hpp"
#include "sim/layers/shard_units.hpp"
#include "sim/layers/stage_prices.hpp"
#include "sim/model/layer_pattern.hpp"

namespace orrery {
namespace {

// Megatron's DistributedDataParallel closes a bucket at max(40e6, 1e6 dp) parameters
// (megatron/core/distributed/distributed_data_parallel.py).
std::int64_t bucket_parameters(int data_ranks) {
  return std::max<std::int64_t>(40'000'000, std::int64_t{1'000'000} * data_ranks);
}

// Layers in forward order, embedding with the first and head with the last, split at full buckets.
std::vector<Bucket> cut_buckets(const Scenario& scenario, const Pricer& pricer,
                                const LayerPrice& prediction, const PriceOfLayer& price_of,
                                int stage) {
  const int layers = scenario.layers_of[static_cast<std::size_t>(stage)];
  const bool first = stage == 0;
  const bool last = stage == scenario.plan.virtual_stages() - 1;
  const int first_layer = scenario.first_layer(stage);
  const auto price = [&](std::int64_t l) -> const LayerPrice& {
    return price_of(first_layer + static_cast<int>(l));
  };
  const RankParameters total = parameters_on_rank(scenario, stage);
  const std::int64_t full = bucket_parameters(scenario.plan.data_ranks());
  const std::int64_t full_of_experts = bucket_parameters(scenario.plan.expert_data_ranks());
  const auto wanted = std::clamp<std::int64_t>(
      std::max(total.dense / full, total.experts / full_of_experts), 1, std::max(1, layers));

  std::vector<Bucket> buckets(static_cast<std::size_t>(wanted));
  // Head first, embedding last.
  const auto add_backward = [&](PassCost& sum, PassCost LayerPrice::*own, BackwardPart part,
                                std::int64_t begin, std::int64_t end) {
    if (last && end == layers) {
      sum.append(pricer.price(part_of(head_backward(scenario), part)));
      sum.append(prediction.*own);
    }
    for (std::int64_t l = end - 1; l >= begin; --l)
      sum.append_layer(price(l).*own, first_layer + static_cast<int>(l));
    if (first && begin == 0) sum.append(pricer.price(part_of(embedding_backward(scenario), part)));
  };
  for (std::int64_t b = 0; b < wanted; ++b) {
    Bucket& bucket = buckets[static_cast<std::size_t>(b)];
    const std::int64_t begin = layers * b / wanted;
    const std::int64_t end = layers * (b + 1) / wanted;
    if (first && b == 0) bucket.forward.append(pricer.price(embedding_forward(scenario)));
    for (std::int64_t l = begin; l < end; ++l)
      bucket.forward.append_layer(price(l).forward, first_layer + static_cast<int>(l));
    if (last && b == wanted - 1) {
      bucket.forward.append(prediction.forward);
      bucket.forward.append(pricer.price(head_forward(scenario)));
    }
    add_backward(bucket.backward, &LayerPrice::backward, BackwardPart::whole, begin, end);
    if (scenario.plan.splits_backward()) {
      add_backward(bucket.input_gradient, &LayerPrice::input_gradient, BackwardPart::inputs, begin,
                   end);
      add_backward(bucket.weight_gradient, &LayerPrice::weight_gradient, BackwardPart::weights,
                   begin, end);
    }
    const auto share = [&](std::int64_t all) { return all * (b + 1) / wanted - all * b / wanted; };
    bucket.parameters = {share(total.dense), share(total.experts)};
  }
  return buckets;
}

StageCost price_stage(const Scenario& scenario, const Pricer& pricer, const LayerPrice& prediction,
                      const PriceOfLayer& price_of, int stage) {
  StageCost cost;
  cost.parameters = parameters_on_rank(scenario, stage);
  if (scenario.plan.shards_weights())
    cut_shard_units(scenario, pricer, prediction, price_of, stage, cost);
  else
    cost.buckets = cut_buckets(scenario, pricer, prediction, price_of, stage);
  wait_for_host_copies(scenario, stage, cost);
  const PassCost received = gather_received(scenario, pricer);
  if (stage > 0 && scenario.plan.sends_on(stage - 1))
    cost.buckets.front().forward = [&] {
      PassCost with = received;
      with.append(cost.buckets.front().forward);
      return with;
    }();
  if (scenario.plan.sends_on(stage)) {
    Bucket& opens =
        cost.backward_buckets.empty() ? cost.buckets.back() : cost.backward_buckets.front();
    const auto receive = [&](PassCost& pass) {
      PassCost with = received;
      with.append(pass);
      pass = std::move(with);
    };
    receive(opens.backward);
    if (scenario.plan.splits_backward()) receive(opens.input_gradient);
  }
  for (std::size_t i = 0; i < cost.count(true); ++i)
    cost.forward.append(cost.bucket(true, i).forward);
  for (std::size_t i = 0; i < cost.count(false); ++i)
    cost.backward.append(cost.bucket(false, i).backward);
  for (auto bucket = cost.buckets.rbegin(); bucket != cost.buckets.rend(); ++bucket) {
    cost.input_gradient.append(bucket->input_gradient);
    cost.weight_gradient.append(bucket->weight_gradient);
  }
  return cost;
}

std::vector<ShapeCost> price_shapes(const Scenario& scenario, const LayerPrices& layers) {
  if (!scenario.model.pattern) return {};
  std::vector<ShapeCost> shapes(scenario.model.pattern->shapes.size());
  for (int l = 0; l < scenario.model.layers; ++l) {
    const LayerKind kind = scenario.kind_of(l);
    const LayerPrice& price = layers.of(kind);
    ShapeCost& shape = shapes[static_cast<std::size_t>(kind.shape)];
    ++shape.layers;
    shape.forward += price.forward.time();
    shape.backward += price.backward.time();
  }
  return shapes;
}

}  // namespace

StepCost price_step(const Scenario& scenario, const KernelModel& kernels,
                    const CollectiveTime& collectives, const GroupShapes& shapes,
                    const RoutedLoads* loads) {
  const Plan& plan = scenario.plan;
  const Pricer pricer{kernels, collectives, shapes, scenario.software, scenario.system.gpu};

  const LayerPrices layers{scenario, pricer, shapes};
  const auto price_stages = [&](const PriceOfLayer& price_of, std::vector<StageCost>& stages) {
    const std::size_t before = stages.size();
    for (int v = 0; v < plan.virtual_stages(); ++v)
      stages.push_back(price_stage(scenario, pricer, layers.prediction(), price_of, v));
    add_step_traffic_losses(scenario, pricer, std::span{stages}.subspan(before));
  };

  StepCost cost;
  price_stages([&](int l) -> const LayerPrice& { return layers.of(scenario.kind_of(l)); },
               cost.stages);
  if (loads && !loads->even()) {
    cost.routed_micro_batches = loads->micro_batches();
    for (int group = 0; group < loads->groups(); ++group)
      for (int m = 0; m < loads->micro_batches(); ++m) {
        std::vector<LayerPrice> routed;
        for (int l = 0; l < scenario.model.layers; ++l)
          if (const LayerKind kind = scenario.kind_of(l); kind.has_experts)
            routed.push_back(
                layers.routed(loads->batch(group, m, static_cast<int>(routed.size())), kind));
        const auto price_of = [&](int l) -> const LayerPrice& {
          if (const LayerKind kind = scenario.kind_of(l); !kind.has_experts) return layers.of(kind);
          return routed[static_cast<std::size_t>(l - scenario.dense_layers_before(l))];
        };
        price_stages(price_of, cost.routed);
      }
  }

  cost.shapes = price_shapes(scenario, layers);
  cost.transfer_bytes = transfer_bytes(scenario);
  cost.optimizer = optimizer_times(scenario, kernels);
  cost.optimizer_tag = kernels.memory(Bytes{}).tag;
  if (scenario.model.tied_embeddings && plan.pp > 1 && plan.trains_tables())
    cost.tied_gradient_bytes =
        Bytes{scenario.software.gradient_bytes *
              static_cast<double>(scenario.padded_vocab / plan.tp * scenario.model.hidden)};
  const double attended = plan.documents.given() ? packed(plan.documents, plan.seq).attended : 0.0;
  cost.model_flop_causal =
      model_flop(scenario.model, plan.gbs, plan.seq, true, plan.trains_weights(), attended);
  cost.model_flop_full =
      model_flop(scenario.model, plan.gbs, plan.seq, false, plan.trains_weights(), attended);
  return cost;
}

StepCost price_step(const Scenario& scenario, const KernelTables* tables,
                    const CollectiveTime& collectives, const GroupShapes& shapes,
                    const RoutedLoads* loads) {
  return price_step(scenario, KernelModel{scenario.system.gpu, scenario.plan.dtype, tables},
                    collectives, shapes, loads);
}

// Forward flop of a sequence of s tokens: 2 s per weight of a matrix, and 4 s^2 a d per layer for
// scores and values (half of it where the causal mask is counted). A layer with a window w counts 4
// s w a d without the causal mask, and with it the keys that its queries see. The embedding is a
// look-up; the output head is a matrix. Only routed experts that a token visits count; a prediction
// layer counts as a layer, its joint projection and another head. Backward is twice forward, of a
// frozen weight as much as forward, and adapters are not counted (Narayanan et al., arXiv
// 2104.04473, appendix; the causal half as Megatron-LM's num_floating_point_operations counts).
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
  // Queries with their gate, keys, values, the output.
  const std::int64_t queries = (model.output_gate ? 2 : 1) * model.heads * model.head_dim;
  const std::int64_t values = model.values_are_keys ? 0 : model.kv_heads * value_width(model);
  return hidden * static_cast<double>(queries + model.kv_heads * model.head_dim + values +
                                      model.heads * value_width(model));
}

double mlp_weights(const Model& model, bool experts) {
  const auto hidden = static_cast<double>(model.hidden);
  const double matrices = model.gated ? 3.0 : 2.0;
  if (!experts) return matrices * hidden * static_cast<double>(model.ffn);
  const Experts& e = *model.experts;
  const auto row = static_cast<double>(e.channels(model.hidden));
  const double latent = 2.0 * hidden * static_cast<double>(e.latent);
  return matrices * (row * static_cast<double>(e.per_token * e.ffn) +
                     hidden * static_cast<double>(e.shared_ffn)) +
         latent + hidden * static_cast<double>(e.count + (e.shared_gate ? 1 : 0));
}

// Weights of the matrices of a layer's mixer.
double mixer_weights(const Model& layer) {
  double sum = layer.heads > 0 ? attention_weights(layer) : 0.0;
  if (!layer.mixer) return sum;
  for (const WeightMatrix& matrix : layer.mixer->matrices(layer.hidden))
    sum += static_cast<double>(matrix.in) * static_cast<double>(matrix.out);
  return sum;
}

// Operations of a layer's mixer on one sequence, without its matrices: those of scores and values,
// or of a scan.
double core_flop(const Model& layer, bool is_local, std::int64_t sequence, bool causal) {
  const double scan =
      layer.mixer ? scan_flop({layer.mixer->work(layer.hidden, 1)->scan, 1, sequence}, false).si()
                  : 0.0;
  if (layer.heads == 0) return scan;
  const auto tokens = static_cast<double>(sequence);
  const std::int64_t window = is_local ? layer.window : 0;
  const AttentionShape mask{.seq_q = sequence, .seq_kv = sequence, .window = window};
  const double whole = is_local ? std::min(tokens, static_cast<double>(window)) : tokens;
  const double keys = causal ? attention_keys(mask) / 2.0 : whole;
  return scan + 2.0 * tokens * keys *
                    static_cast<double>(layer.heads * (layer.head_dim + value_width(layer)));
}

}  // namespace

Flop model_flop(const Model& model, std::int64_t sequences, std::int64_t sequence, bool causal,
                bool trains_weights, double attended) {
  const auto hidden = static_cast<double>(model.hidden);
  const auto tokens = static_cast<double>(sequence);
  const double head = hidden * static_cast<double>(model.vocab);
  double weights = head;
  double core = 0.0;
  const auto add = [&](const Model& shape, bool experts, bool local) {
    weights += mixer_weights(shape) + mlp_weights(shape, experts);
    const auto length = attended > 0.0 ? std::llround(attended) : sequence;
    core += core_flop(shape, local, length, causal) * tokens / static_cast<double>(length);
  };
  const auto add_shape = [&](int place) {
    const Model& shape = model.pattern->shapes[static_cast<std::size_t>(place)];
    add(shape, shape.experts.has_value(), shape.window > 0);
  };
  const auto add_layer = [&](int layer) {
    const auto place = static_cast<std::size_t>(layer);
    if (model.pattern) return add_shape(model.pattern->shape_of[place]);
    const bool local = !model.layer_is_local.empty() && model.layer_is_local[place];
    add(model, !model.layer_has_experts.empty() && model.layer_has_experts[place],
        local && model.window > 0);
  };
  for (int layer = 0; layer < model.layers; ++layer) add_layer(layer);
  for (int module = 0; module < model.prediction_layers; ++module) {
    weights += 2.0 * hidden * hidden + head;
    if (!model.pattern) {
      add_layer(model.layers - 1);
      continue;
    }
    for (const int place : model.pattern->prediction_shapes) add_shape(place);
  }
  const double passes = trains_weights ? 3.0 : 2.0;
  return Flop{static_cast<double>(sequences) * (passes * (2.0 * tokens * weights) + 3.0 * core)};
}

}  // namespace orrery
