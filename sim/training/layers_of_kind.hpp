#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/layers/step_cost.hpp"
#include "sim/model/mixer.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {

/// Consecutive layers, the first of a model being 0.
struct LayerRun {
  int first = 0, last = 0;
  bool operator==(const LayerRun&) const = default;
};

/// The layers of one kind of a model whose layers differ. Times are of a rank and micro-batch,
/// without waits for other ranks.
struct LayersOfKind {
  std::string name;          ///< "mamba2", "full+mlp": its mixer and its feed-forward part.
  std::string mixer;         ///< Mixer::kind(): "gated_delta_net"; "": none.
  std::string feed_forward;  ///< "experts", "mlp" or "mlp_and_experts"; "": none.
  int layers = 0;            ///< In the whole model.
  std::vector<LayerRun> runs;
  std::vector<int> of_stage;           ///< Layers that a rank of each pipeline stage holds.
  Seconds forward;                     ///< Of all of them.
  Seconds backward;                    ///< Includes recomputation.
  Bytes kept;                          ///< Activations of one of them, for the backward pass.
  std::int64_t parameters = 0;         ///< Of one of them.
  std::int64_t active_parameters = 0;  ///< Of one: without the experts that a token does not visit.
  std::int64_t rank_parameters = 0;    ///< Of one, on each rank that holds it.
  KeptBytes sequence;                  ///< Keys, values and states of a sequence in one of them.
};

/// Kinds in the order of their first layer; empty if all layers are alike. Layers of a kind whose
/// activations are not kept alike (RecomputeChoice::layers) have the mean.
std::vector<LayersOfKind> layers_by_kind(const Scenario& scenario, const StepCost& cost);

/// "0-2, 4-6, 8"
std::string runs_text(const std::vector<LayerRun>& runs);

}  // namespace orrery
