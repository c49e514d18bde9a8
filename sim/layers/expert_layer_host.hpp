#pragma once

#include "sim/layers/op.hpp"
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

}  // namespace orrery
