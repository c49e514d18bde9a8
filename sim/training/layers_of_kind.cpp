#include "sim/training/layers_of_kind.hpp"

#include <algorithm>

#include "sim/core/number_text.hpp"
#include "sim/layers/layer_activations.hpp"
#include "sim/layers/rank_parameters.hpp"
#include "sim/model/layer_pattern.hpp"

namespace orrery {
namespace {

// The parts by which a reader knows the kind, and what its layers have whatever the plan.
LayersOfKind described(const Model& model, const LayerPattern::Layer& kind) {
  const LayerPattern& pattern = *model.pattern;
  LayersOfKind of;
  of.name = pattern.short_name_of(kind);
  if (kind.mixer >= 0) {
    const Mixer& mixer = *pattern.mixers[static_cast<std::size_t>(kind.mixer)].mixer;
    of.mixer = mixer.kind();
    of.sequence = mixer.kept(model.hidden);
  }
  if (kind.ffn >= 0) {
    const FeedForward& ffn = pattern.ffns[static_cast<std::size_t>(kind.ffn)].ffn;
    of.feed_forward = !ffn.experts ? "mlp" : ffn.width > 0 ? "mlp_and_experts" : "experts";
  }
  of.parameters = layer_parameters(model, kind, false);
  of.active_parameters = layer_parameters(model, kind, true);
  return of;
}

void add_layer(LayersOfKind& of, int layer) {
  ++of.layers;
  if (!of.runs.empty() && of.runs.back().last == layer - 1)
    of.runs.back().last = layer;
  else
    of.runs.push_back({layer, layer});
}

}  // namespace

std::vector<LayersOfKind> layers_by_kind(const Scenario& scenario, const StepCost& cost) {
  std::vector<LayersOfKind> all;
  const Plan& plan = scenario.plan;
  if (!scenario.model.pattern || !scenario.model.pattern->has_several_kinds()) return all;
  // Shapes of the layers come first, then those of prediction modules alone.
  for (const LayerPattern::Layer& kind : scenario.model.pattern->kinds()) {
    LayersOfKind& of = all.emplace_back(described(scenario.model, kind));
    of.of_stage.resize(static_cast<std::size_t>(plan.pp));
    const ShapeCost& priced = cost.shapes[all.size() - 1];
    of.forward = priced.forward;
    of.backward = priced.backward;
  }
  for (int v = 0; v < plan.virtual_stages(); ++v) {
    const int first = scenario.first_layer(v);
    const StageParts parts = parts_on_rank(scenario, v);
    for (std::size_t l = 0; l < parts.layers.size(); ++l) {
      const int layer = first + static_cast<int>(l);
      const LayerKind kind = scenario.kind_of(layer);
      LayersOfKind& of = all[static_cast<std::size_t>(kind.shape)];
      add_layer(of, layer);
      of.rank_parameters = parts.layers[l].held();
      of.kept +=
          layer_activations(scenario, kind.kept ? RecomputeChoice{Recompute::none} : plan.recompute,
                            kind) -
          offloaded_activations(scenario, kind);
    }
  }
  for (int stage = 0; stage < plan.pp; ++stage)
    for (int chunk = 0; chunk < plan.chunks(); ++chunk) {
      const int v = plan.virtual_stage(stage, chunk), first = scenario.first_layer(v);
      for (int l = 0; l < scenario.layers_of[static_cast<std::size_t>(v)]; ++l)
        ++all[static_cast<std::size_t>(scenario.kind_of(first + l).shape)]
              .of_stage[static_cast<std::size_t>(stage)];
    }
  for (LayersOfKind& of : all) of.kept = of.kept / static_cast<double>(std::max(1, of.layers));
  return all;
}

std::string runs_text(const std::vector<LayerRun>& runs) {
  std::string text;
  for (const LayerRun& run : runs) {
    text += (text.empty() ? "" : ", ") + grouped(run.first);
    if (run.last > run.first) text += "-" + grouped(run.last);
  }
  return text;
}

}  // namespace orrery
