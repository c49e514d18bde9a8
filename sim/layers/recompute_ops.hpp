#pragma once

#include <span>

#include "sim/layers/op.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {

/// What the plan computes again before a layer's backward pass, experts being filled evenly; empty
/// for Recompute::none.
///
/// Full      the whole forward pass with its collectives.
/// Selective the forward ops of each part that the plan names (RecomputeModule), in the layer's
///           order; parts that a layer does not have cost nothing.
/// Source    Megatron Core, transformer/transformer_config.py, recompute_modules.
Ops layer_recompute(const Scenario& scenario, LayerKind kind = LayerKind::dense);

/// Of a selective choice in a layer with experts, what takes no exchange of tokens: all parts but
/// RecomputeModule::moe. `rows`: of each of the rank's experts.
Ops recompute_beside_exchanges(const Scenario& scenario, LayerKind kind,
                               std::span<const std::int64_t> rows);

}  // namespace orrery
