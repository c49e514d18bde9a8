#pragma once

#include "sim/layers/layer_ops.hpp"
#include "sim/layers/layer_parts.hpp"
#include "sim/layers/op.hpp"
#include "sim/layers/pass_cost.hpp"
#include "sim/layers/routed_loads.hpp"
#include "sim/moe/expert_exchange.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {

/// Host time of the parts of a layer with experts, in one pass: before dispatch, dispatch with
/// experts, and combine with the rest. Faster kernels wait for it; exchanges add to it.
///
/// Attention and router lie before the experts in a forward pass and after them in a backward pass,
/// whose total is the same. Each part of a split backward pass has half, as it has one of the two
/// products of each linear layer.
struct ExpertLayerHostParts {
  Seconds before, experts, after;
};
/// `layer`: its shape; one without a mixer has none before its router.
ExpertLayerHostParts forward_host(const Scenario& scenario, const Model& layer);
ExpertLayerHostParts backward_host(const Scenario& scenario, const Model& layer, BackwardPart part);
/// The router of a forward pass, for recomputed experts.
Seconds router_host(const Scenario& scenario);

/// The cost of one layer for a rank and micro-batch.
struct LayerPrice {
  PassCost forward;
  PassCost backward;  ///< Includes recomputation.
  /// A split backward pass: gradients for the previous layer, with all collectives, and those of
  /// the weights, which need only kernels.
  PassCost input_gradient = {}, weight_gradient = {};
};

/// Prices single layers of a plan, and layers with experts as routed.
///
/// A rank with experts synchronises twice with its host, before dispatch and before its experts
/// begin, as the host must know the number of rows; so each part has its own floor of host time.
/// All ranks of an expert group wait for each other in dispatch and combine: a routed layer takes
/// the busiest port's dispatch, the slowest rank's experts and the busiest port's combine.
class LayerPrices {
 public:
  LayerPrices(const Scenario& scenario, const Pricer& pricer, const GroupShapes& shapes);

  /// The price of a kind that the model has, with evenly filled experts.
  const LayerPrice& of(LayerKind kind) const { return priced(kind).even; }
  /// All prediction layers; the last stage runs them before its head.
  const LayerPrice& prediction() const { return prediction_; }
  /// The exchange under even routing; empty without an expert group.
  const ExchangeCost& even_exchange() const { return even_exchange_; }
  LayerPrice routed(const RoutedBatch& batch, LayerKind kind) const;

 private:
  struct Ends {
    PassCost before;
    PassCost during_dispatch, during_combine;  ///< Shared experts that are overlapped.
    PassCost after;
  };
  struct OfKind {
    LayerKind kind;
    LayerPrice even;
    Ends forward, backward;  ///< Only for layers with experts.
    Ends inputs, weights;    ///< The parts of a split `backward`.
  };
  using Members = std::vector<std::vector<std::int64_t>>;  ///< Rows of each expert, by rank.

  const OfKind& priced(LayerKind kind) const;
  void price_all_ends(OfKind& of) const;
  ExchangeCost exchange(const ExchangeLoad& load) const;
  Ends price_ends(const LayerEnds& ends, BackwardPart part, const ExpertLayerHostParts& host) const;
  PassCost experts_forward(const OfKind& of, const Members& members) const;
  PassCost experts_backward(const OfKind& of, const Members& members, BackwardPart part) const;
  PassCost with_experts(const Ends& ends, const PassCost& experts,
                        const ExchangeCost& exchange) const;
  PassCost weight_gradient(const OfKind& of, const Members& members) const;
  /// Pass the layer's experts_forward() as `forward`.
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
