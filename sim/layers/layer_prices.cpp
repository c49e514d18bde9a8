#include "sim/layers/layer_prices.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "sim/layers/expert_ops.hpp"
#include "sim/layers/layer_ops.hpp"
#include "sim/moe/routing_plan.hpp"

namespace orrery {
namespace {

// The slowest of several ranks that wait for each other; `ops_of(rank)` are its kernels.
template <class OpsOf>
PassCost slowest_of(const Pricer& pricer, std::size_t ranks, const OpsOf& ops_of, Seconds host) {
  if (ranks == 1) return pricer.price(ops_of(0), host);
  std::vector<Seconds> each;
  each.reserve(ranks);
  Seconds sum;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    each.push_back(pricer.length(ops_of(rank), host));
    sum += each.back();
  }
  const auto slowest = std::max_element(each.begin(), each.end()) - each.begin();
  PassCost cost = pricer.price(ops_of(static_cast<std::size_t>(slowest)), host);
  cost.lost.compute = cost.time() - sum / static_cast<double>(ranks);
  if (cost.has_collectives()) return cost;
  Segment all{cost.time(), {}, {}};
  all.first_kernel = cost.segments.front().first_kernel;
  all.last_kernel = cost.segments.back().last_kernel;
  for (const Segment& segment : cost.segments) {
    all.weight_gradients += segment.weight_gradients;
    all.streaming += segment.streaming;
    all.idle += segment.idle;
  }
  all.members = std::move(each);
  cost.segments = {all};
  return cost;
}

double slowdown_of(const Scenario& scenario) {
  return scenario.system.host_slowdown *
         (scenario.plan.ep_overlap ? scenario.software.overlapped_host : 1.0);
}

}  // namespace

LayerPrices::LayerPrices(const Scenario& scenario, const Pricer& pricer, const GroupShapes& shapes)
    : scenario_{scenario},
      sizes_{scenario, scenario.expert_shape()},
      pricer_{pricer},
      group_{shapes[GroupKind::expert]} {
  if (const auto& experts = scenario.model.experts; experts && scenario.plan.ep > 1) {
    exchange_.emplace(pricer.collectives());
    even_exchange_ = exchange(uniform_exchange(
        *experts, group_.ranks, std::max(1, group_.per_domain),
        static_cast<double>(sizes_.own_tokens), even_choice(scenario.plan.routing)));
  }
  for (const LayerKind kind : scenario.kinds()) {
    OfKind& of = kinds_.emplace_back();
    of.kind = kind;
    if (kind.has_experts) {
      price_all_ends(of);
      of.even = price_experts(of, {even_rows(sizes_)}, even_exchange_);
    } else {
      of.even = price_dense(kind);
    }
  }
  prediction_ = price_prediction();
}

const LayerPrices::OfKind& LayerPrices::priced(LayerKind kind) const {
  const auto found =
      std::find_if(kinds_.begin(), kinds_.end(), [&](const OfKind& of) { return of.kind == kind; });
  assert(found != kinds_.end());
  return *found;
}

void LayerPrices::price_all_ends(OfKind& of) const {
  const Model& layer = scenario_.shape_of(of.kind);
  of.forward = price_ends(layer_ends_forward(scenario_, of.kind), BackwardPart::whole,
                          forward_host(scenario_, layer));
  const LayerEnds backward = layer_ends_backward(scenario_, of.kind);
  const auto backward_ends = [&](BackwardPart part) {
    return price_ends(backward, part, backward_host(scenario_, layer, part));
  };
  of.backward = backward_ends(BackwardPart::whole);
  if (!scenario_.plan.splits_backward()) return;
  of.inputs = backward_ends(BackwardPart::inputs);
  of.weights = backward_ends(BackwardPart::weights);
}

ExchangeCost LayerPrices::exchange(const ExchangeLoad& load) const {
  if (!exchange_) return {};
  const Experts& experts = *scenario_.model.experts;
  const Dtype dtype = scenario_.plan.dtype;
  const ExchangeShape shape{.group = group_,
                            .hidden = experts.channels(scenario_.model.hidden),
                            .experts = experts.count,
                            .top_k = experts.per_token,
                            .dispatched = is_wide(dtype) ? dtype : Dtype::bf16};
  return (*exchange_)(scenario_.plan.moe_dispatcher, shape, load);
}

LayerPrices::Ends LayerPrices::price_ends(const LayerEnds& ends, BackwardPart part,
                                          const ExpertLayerHostParts& host) const {
  const auto price = [&](const Ops& ops, Seconds busy = {}) {
    return pricer_.price(part_of(ops, part), busy);
  };
  return {price(ends.before, host.before), price(ends.during_dispatch), price(ends.during_combine),
          price(ends.after, host.after)};
}

PassCost LayerPrices::experts_forward(const OfKind& of, const Members& members) const {
  const LayerSizes sizes{scenario_, of.kind};
  const auto ops_of = [&](std::size_t rank) { return of_experts_forward(sizes, members[rank]); };
  return slowest_of(pricer_, members.size(), ops_of, forward_host(scenario_, sizes_.model).experts);
}

PassCost LayerPrices::experts_backward(const OfKind& of, const Members& members,
                                       BackwardPart part) const {
  const LayerSizes sizes{scenario_, of.kind};
  const auto ops_of = [&](std::size_t rank) {
    return part_of(of_experts_backward(sizes, members[rank]), part);
  };
  return slowest_of(pricer_, members.size(), ops_of,
                    backward_host(scenario_, sizes_.model, part).experts);
}

// The backward pass sends a combine's gradient like a dispatch, and a dispatch's like a combine.
PassCost LayerPrices::with_experts(const Ends& ends, const PassCost& experts,
                                   const ExchangeCost& exchange) const {
  // NCCL's all-to-all only copies; the sum is a kernel of its own.
  const ExpertDispatcher dispatcher = scenario_.plan.moe_dispatcher;
  const bool sums =
      dispatcher != ExpertDispatcher::all_to_all && dispatcher != ExpertDispatcher::hierarchical;
  PassCost cost = ends.before;
  cost.append_concurrent(ends.during_dispatch,
                         pricer_.collective(exchange.dispatch, GroupKind::expert, false, false));
  cost.append(experts);
  cost.append_concurrent(ends.during_combine,
                         pricer_.collective(exchange.combine, GroupKind::expert, true, sums));
  cost.append(ends.after);
  cost.lost.dispatch += exchange.dispatch.time() - even_exchange_.dispatch.time();
  cost.lost.combine += exchange.combine.time() - even_exchange_.combine.time();
  return cost;
}

// Weight gradients of all kernels between the exchanges and concurrent with them.
PassCost LayerPrices::weight_gradient(const OfKind& of, const Members& members) const {
  PassCost cost = of.weights.before;
  cost.append(of.weights.during_dispatch);
  cost.append(experts_backward(of, members, BackwardPart::weights));
  cost.append(of.weights.during_combine);
  cost.append(of.weights.after);
  return cost;
}

PassCost LayerPrices::recomputed(const OfKind& of, const Members& members, const PassCost& forward,
                                 const ExchangeCost& exchange) const {
  const RecomputeChoice& choice = scenario_.plan.recompute;
  if (choice.kind == Recompute::none || of.kind.kept) return {};
  if (choice.kind == Recompute::full) return with_experts(of.forward, forward, exchange);
  const auto rows_of = [](const std::vector<std::int64_t>& rows) {
    return std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
  };
  const auto fullest = std::max_element(
      members.begin(), members.end(),
      [&](const auto& one, const auto& other) { return rows_of(one) < rows_of(other); });
  PassCost cost = pricer_.price(recompute_without_exchange(scenario_, of.kind, *fullest));
  if (choice.selects(RecomputeModule::moe)) {
    const LayerSizes sizes{scenario_, of.kind};
    const SharedOps shared = shared_overlap_forward(sizes);
    Ops before = before_experts_forward(sizes);
    Ops after = after_experts_forward(sizes);
    append(before, shared.before);
    append(after, shared.after);
    const Ends ends{pricer_.price(before, router_host(scenario_)),
                    pricer_.price(shared.during_dispatch), pricer_.price(shared.during_combine),
                    pricer_.price(after, forward_host(scenario_, sizes_.model).after)};
    cost.append(with_experts(ends, forward, exchange));
  }
  return cost;
}

LayerPrice LayerPrices::price_experts(const OfKind& of, const Members& members,
                                      const ExchangeCost& exchange) const {
  const PassCost forward = experts_forward(of, members);
  LayerPrice price;
  price.forward = with_experts(of.forward, forward, exchange);
  price.backward = recomputed(of, members, forward, exchange);
  price.backward.mark_recomputed();
  if (scenario_.plan.splits_backward()) {
    price.input_gradient = price.backward;
    price.input_gradient.append(
        with_experts(of.inputs, experts_backward(of, members, BackwardPart::inputs), exchange));
    price.weight_gradient = weight_gradient(of, members);
  }
  price.backward.append(
      with_experts(of.backward, experts_backward(of, members, BackwardPart::whole), exchange));
  return price;
}

LayerPrice LayerPrices::routed(const RoutedBatch& batch, LayerKind kind) const {
  Members members;
  const std::int64_t tensor_ranks = scenario_.plan.etp;
  for (int rank = 0; rank < group_.ranks; ++rank) {
    const auto rows = batch.computed_by(rank);
    members.emplace_back(rows.begin(), rows.end());
    for (std::int64_t& count : members.back()) count *= tensor_ranks;
  }
  return price_experts(priced(kind), members, exchange(batch.exchange));
}

namespace {

// Host time to launch a layer's mixer; zero for a layer without one.
Seconds mixer_host(const Scenario& scenario, const Model& layer) {
  const ExpertLayerHost& host = scenario.software.expert_layer_host;
  if (!has_mixer(layer)) return Seconds{};
  return slowdown_of(scenario) * (layer.latent ? host.latent_attention : host.attention);
}

}  // namespace

LayerPrice LayerPrices::price_dense(LayerKind kind) const {
  // The mixer of a layer of its own takes the host as long as before the experts of its layer.
  const Seconds host = scenario_.model.pattern && scenario_.model.experts
                           ? mixer_host(scenario_, scenario_.shape_of(kind))
                           : Seconds{};
  LayerPrice price;
  price.forward = pricer_.price(layer_forward(scenario_, kind), host);
  price.backward = pricer_.price(layer_recompute(scenario_, kind));
  price.backward.mark_recomputed();
  const Ops backward = layer_backward(scenario_, kind);
  if (scenario_.plan.splits_backward()) {
    price.input_gradient = price.backward;
    price.input_gradient.append(pricer_.price(part_of(backward, BackwardPart::inputs), 0.5 * host));
    price.weight_gradient = pricer_.price(part_of(backward, BackwardPart::weights), 0.5 * host);
  }
  price.backward.append(pricer_.price(backward, host));
  return price;
}

LayerPrice LayerPrices::price_prediction() const {
  LayerPrice all;
  if (scenario_.model.prediction_layers == 0) return all;
  LayerPrice like;  // The layers of one module.
  for (const LayerKind kind : scenario_.prediction_kinds()) {
    const LayerPrice& one = of(kind);
    like.forward.append(one.forward);
    like.backward.append(one.backward);
    like.input_gradient.append(one.input_gradient);
    like.weight_gradient.append(one.weight_gradient);
  }
  for (int i = 0; i < scenario_.model.prediction_layers; ++i) {
    all.forward.append(pricer_.price(prediction_forward(scenario_)));
    all.forward.append(like.forward);
    all.forward.append(pricer_.price(head_forward(scenario_)));
    const auto backward = [&](PassCost& sum, const PassCost& layer, BackwardPart part) {
      sum.append(pricer_.price(part_of(head_backward(scenario_), part)));
      sum.append(layer);
      sum.append(pricer_.price(part_of(prediction_backward(scenario_), part)));
    };
    backward(all.backward, like.backward, BackwardPart::whole);
    if (!scenario_.plan.splits_backward()) continue;
    backward(all.input_gradient, like.input_gradient, BackwardPart::inputs);
    backward(all.weight_gradient, like.weight_gradient, BackwardPart::weights);
  }
  return all;
}

Seconds router_host(const Scenario& scenario) {
  return slowdown_of(scenario) * scenario.software.expert_layer_host.router;
}

ExpertLayerHostParts forward_host(const Scenario& scenario, const Model& layer) {
  const ExpertLayerHost& host = scenario.software.expert_layer_host;
  const double slowdown = slowdown_of(scenario);
  const auto experts = static_cast<double>(scenario.model.experts->count / scenario.plan.ep);
  const Seconds exchange = scenario.plan.ep > 1 ? host.exchange : Seconds{};
  const Seconds shared = scenario.model.experts->shared_ffn > 0 ? host.shared_experts : Seconds{};
  return {mixer_host(scenario, layer) + router_host(scenario),
          slowdown * (exchange + experts * host.expert + shared), slowdown * exchange};
}

ExpertLayerHostParts backward_host(const Scenario& scenario, const Model& layer,
                                   BackwardPart part) {
  const ExpertLayerHostParts forward = forward_host(scenario, layer);
  const double share = part == BackwardPart::whole ? 1.0 : 0.5;
  return {share * forward.after, share * forward.experts, share * forward.before};
}

}  // namespace orrery
