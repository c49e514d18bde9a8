#include "sim/cost/step_cost.hpp"

#include <algorithm>
#include <functional>

#include "sim/cost/layer_ops.hpp"
#include "sim/cost/layer_prices.hpp"
#include "sim/cost/stage_prices.hpp"

namespace orrery {
namespace {

// Megatron's DistributedDataParallel closes a bucket at max(40e6, 1e6 dp) parameters
// (megatron/core/distributed/distributed_data_parallel.py).
std::int64_t bucket_parameters(int data_ranks) {
  return std::max<std::int64_t>(40'000'000, std::int64_t{1'000'000} * data_ranks);
}

// The price of a layer, by its number in the model.
using PriceOfLayer = std::function<const LayerPrice&(int)>;

// Layers in forward order, embedding with the first and head with the last, cut where a bucket is
// full.
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
  for (std::int64_t b = 0; b < wanted; ++b) {
    Bucket& bucket = buckets[static_cast<std::size_t>(b)];
    const std::int64_t begin = layers * b / wanted;
    const std::int64_t end = layers * (b + 1) / wanted;
    if (first && b == 0) bucket.forward.append(pricer.price(embedding_forward(scenario)));
    for (std::int64_t l = begin; l < end; ++l) bucket.forward.append(price(l).forward);
    if (last && b == wanted - 1) {
      bucket.forward.append(prediction.forward);
      bucket.forward.append(pricer.price(head_forward(scenario)));
      bucket.backward.append(pricer.price(head_backward(scenario)));
      bucket.backward.append(prediction.backward);
    }
    for (std::int64_t l = begin; l < end; ++l) bucket.backward.append(price(l).backward);
    if (first && b == 0) bucket.backward.append(pricer.price(embedding_backward(scenario)));
    const auto share = [&](std::int64_t all) { return all * (b + 1) / wanted - all * b / wanted; };
    bucket.parameters = {share(total.dense), share(total.experts)};
  }
  return buckets;
}

// Sharded weights come in units that are whole together: embedding, each layer, head. The backward
// pass begins with the last layer and the head, which are therefore kept from the forward pass; an
// embedding's gradient needs no weights (torchtitan, parallelize_llama.py).
std::vector<Bucket> cut_units(const Scenario& scenario, const Pricer& pricer,
                              const PriceOfLayer& price_of, int stage) {
  const int layers = scenario.layers_of[static_cast<std::size_t>(stage)];
  const StageParts parts = parts_on_rank(scenario, stage);
  const auto copied = [&](double bytes, std::int64_t parameters) {
    return bytes > 0.0 ? pricer.price(Ops{memory("copy", bytes * static_cast<double>(parameters))})
                       : PassCost{};
  };
  std::vector<Bucket> units;
  const auto add = [&](const PassCost& forward, const PassCost& backward, std::int64_t parameters,
                       std::int64_t regathered) {
    const Software& software = scenario.software;
    Bucket unit{copied(software.unshard_bytes, parameters),
                copied(software.unshard_bytes, regathered),
                {parameters, 0},
                regathered};
    unit.forward.append(forward);
    unit.backward.append(backward);
    unit.backward.append(copied(software.reduce_copy_bytes, parameters));
    units.push_back(std::move(unit));
  };
  if (parts.embedding > 0)
    add(pricer.price(embedding_forward(scenario)), pricer.price(embedding_backward(scenario)),
        parts.embedding, 0);
  for (int l = 0; l < layers; ++l) {
    const bool kept = !scenario.plan.reshard || l == layers - 1;
    const LayerPrice& layer = price_of(scenario.first_layer(stage) + l);
    add(layer.forward, layer.backward, parts.layer, kept ? 0 : parts.layer);
  }
  if (parts.head > 0)
    add(pricer.price(head_forward(scenario)), pricer.price(head_backward(scenario)), parts.head, 0);
  return units;
}

StageCost price_stage(const Scenario& scenario, const Pricer& pricer, const LayerPrice& prediction,
                      const PriceOfLayer& price_of, int stage) {
  const int last = scenario.plan.virtual_stages() - 1;
  StageCost cost;
  cost.parameters = parameters_on_rank(scenario, stage);
  cost.buckets = scenario.plan.shards_weights()
                     ? cut_units(scenario, pricer, price_of, stage)
                     : cut_buckets(scenario, pricer, prediction, price_of, stage);
  const PassCost received = gather_received(scenario, pricer);
  if (stage > 0)
    cost.buckets.front().forward = [&] {
      PassCost with = received;
      with.append(cost.buckets.front().forward);
      return with;
    }();
  if (stage < last)
    cost.buckets.back().backward = [&] {
      PassCost with = received;
      with.append(cost.buckets.back().backward);
      return with;
    }();
  for (const Bucket& bucket : cost.buckets) cost.forward.append(bucket.forward);
  for (auto bucket = cost.buckets.rbegin(); bucket != cost.buckets.rend(); ++bucket)
    cost.backward.append(bucket->backward);
  return cost;
}

}  // namespace

StepCost price_step(const Scenario& scenario, const KernelModel& kernels,
                    const CollectiveTime& collectives, const GroupShapes& shapes,
                    const RoutedLoads* loads) {
  const Plan& plan = scenario.plan;
  const Pricer pricer{kernels, collectives, shapes, scenario.software,
                      scenario.system.gpu.peak_16bit};

  const LayerPrices layers{scenario, pricer, shapes};
  const auto price_stages = [&](const PriceOfLayer& price_of, std::vector<StageCost>& stages) {
    for (int v = 0; v < plan.virtual_stages(); ++v)
      stages.push_back(price_stage(scenario, pricer, layers.prediction(), price_of, v));
  };

  StepCost cost;
  price_stages([&](int l) -> const LayerPrice& { return layers.of(scenario.kind_of(l)); },
               cost.stages);
  if (loads && !loads->even()) {
    cost.routed_micro_batches = loads->micro_batches();
    for (int group = 0; group < loads->groups(); ++group)
      for (int m = 0; m < loads->micro_batches(); ++m) {
        std::vector<LayerPrice> routed;
        for (int l = 0; l < loads->layers(); ++l)
          routed.push_back(layers.routed(loads->batch(group, m, l)));
        const auto price_of = [&](int l) -> const LayerPrice& {
          if (scenario.kind_of(l) == LayerKind::dense) return layers.of(LayerKind::dense);
          return routed[static_cast<std::size_t>(l - scenario.dense_layers_before(l))];
        };
        price_stages(price_of, cost.routed);
      }
  }

  cost.transfer_bytes = transfer_bytes(scenario);
  cost.optimizer = optimizer_times(scenario, kernels);
  if (scenario.model.tied_embeddings && plan.pp > 1)
    cost.tied_gradient_bytes =
        Bytes{scenario.software.gradient_bytes *
              static_cast<double>(scenario.padded_vocab / plan.tp * scenario.model.hidden)};
  cost.model_flop_causal = model_flop(scenario.model, plan.gbs, plan.seq, true);
  cost.model_flop_full = model_flop(scenario.model, plan.gbs, plan.seq, false);
  return cost;
}

StepCost price_step(const Scenario& scenario, const KernelTables* tables,
                    const CollectiveTime& collectives, const GroupShapes& shapes,
                    const RoutedLoads* loads) {
  return price_step(scenario, KernelModel{scenario.system.gpu, scenario.plan.dtype, tables},
                    collectives, shapes, loads);
}

}  // namespace orrery
