#pragma once

#include "sim/layers/layer_ops.hpp"
#include "sim/layers/layer_parts.hpp"
#include "sim/layers/op.hpp"
#include "sim/layers/pass_cost.hpp"
#include "sim/layers/routed_loads.hpp"
#include "sim/moe/expert_exchange.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {

/// How long the host is busy with the parts of a layer with experts, in one pass: what stands
/// before its experts, they with the dispatch, and what follows with the combine. Kernels that are
/// faster than that wait; exchanges come on top.
///
/// Attention and router lie before the experts in a forward pass and after them in a backward pass,
/// which takes as long in all. Of a backward pass in two, each part has half: it has one of the two
/// products of each linear layer.
struct ExpertLayerHostParts {
  Seconds before, experts, after;
};
ExpertLayerHostParts forward_host(const Scenario& scenario);
ExpertLayerHostParts backward_host(const Scenario& scenario, BackwardPart part);
/// Of a forward pass, the router alone, as where the experts are computed again.
Seconds router_host(const Scenario& scenario);

/// What one layer costs a rank for one micro-batch.
struct LayerPrice {
  PassCost forward;
  PassCost backward;  ///< With what the plan recomputes.
  /// The same in two, where the schedule has it so: what the layer before waits for, with all
  /// collectives, and the weights' gradients, which wait for nothing but kernels.
  PassCost input_gradient = {}, weight_gradient = {};
};

/// Prices single layers of a plan, layers with experts also as a router filled them.
///
/// A rank with experts stops for its host twice, before tokens leave and before its experts begin,
/// as the host must know how many there are; so that each part has the host's floor of its own.
/// All ranks of an expert group wait for each other in dispatch and combine: a layer as routed
/// lasts the busiest port's dispatch, the slowest rank's experts and the busiest port's combine.
class LayerPrices {
 public:
  LayerPrices(const Scenario& scenario, const Pricer& pricer, const GroupShapes& shapes);

  /// Of a kind that the model has; experts filled evenly.
  const LayerPrice& of(LayerKind kind) const { return priced(kind).even; }
  /// All prediction layers, which the last stage runs before its head.
  const LayerPrice& prediction() const { return prediction_; }
  /// Of tokens that go to all experts alike; nothing without an expert group.
  const ExchangeCost& even_exchange() const { return even_exchange_; }
  LayerPrice routed(const RoutedBatch& batch, LayerKind kind) const;

 private:
  struct Ends {
    PassCost before;
    PassCost beside_dispatch, beside_combine;  ///< Shared experts, where they overlap.
    PassCost after;
  };
  struct OfKind {
    LayerKind kind;
    LayerPrice even;
    Ends forward, backward;  ///< Of layers with experts.
    Ends inputs, weights;    ///< Of `backward`, where the schedule has it in two.
  };
  using Members = std::vector<std::vector<std::int64_t>>;  ///< Rows of each expert, by rank.

  const OfKind& priced(LayerKind kind) const;
  void price_all_ends(OfKind& of) const;
  ExchangeCost exchange(const ExchangeLoad& load) const;
  Ends price_ends(const LayerEnds& ends, BackwardPart part, const ExpertLayerHostParts& host) const;
  PassCost experts_forward(const Members& members) const;
  PassCost experts_backward(const Members& members, BackwardPart part) const;
  PassCost with_experts(const Ends& ends, const PassCost& experts,
                        const ExchangeCost& exchange) const;
  PassCost weight_gradient(const OfKind& of, const Members& members) const;
  /// `forward`: the layer's experts_forward().
  PassCost recomputed(const OfKind& of, const Members& members, const PassCost& forward,
                      const ExchangeCost& exchange) const;
  LayerPrice price_experts(const OfKind& of, const Members& members,
                           const ExchangeCost& exchange) const;
  LayerPrice price_dense(LayerKind kind) const;
  LayerPrice price_prediction() const;

  const Scenario& scenario_;
  const LayerSizes sizes_;
  const Pricer& pricer_;
  GroupShape group_;
  std::optional<ExpertExchange> exchange_;
  ExchangeCost even_exchange_;
  std::vector<OfKind> kinds_;
  LayerPrice prediction_;
};

}  // namespace orrery
