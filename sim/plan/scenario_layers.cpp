#include <algorithm>
#include <numeric>

#include "sim/core/nearest.hpp"
#include "sim/model/layer_pattern.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {

namespace {

// Layers of the same virtual stage before it.
int place_in_stage(const std::vector<int>& layers_of, int layer) {
  for (const int layers : layers_of) {
    if (layer < layers) return layer;
    layer -= layers;
  }
  return layer;
}

}  // namespace

int Scenario::first_layer(int virtual_stage) const {
  return std::accumulate(layers_of.begin(), layers_of.begin() + virtual_stage, 0);
}

namespace {

LayerKind kind_of_shape(const Scenario& scenario, int place, bool kept, bool sixteen_bit) {
  const Model& shape = scenario.model.pattern->shapes[static_cast<std::size_t>(place)];
  const bool windowed = scenario.plan.fused_attention && shape.window < scenario.plan.seq;
  return {shape.experts.has_value(), windowed ? shape.window : 0, kept, place, sixteen_bit};
}

bool stays_in_16_bits(const Scenario& scenario, int layer) {
  const Plan& plan = scenario.plan;
  return is_narrow(plan.dtype) &&
         (layer < plan.bf16_start_layers || layer >= scenario.model.layers - plan.bf16_end_layers);
}

}  // namespace

LayerKind Scenario::kind_of(int layer) const {
  const auto says = [&](const std::vector<bool>& flags) {
    return !flags.empty() && flags[static_cast<std::size_t>(layer)];
  };
  const int again = plan.recompute.layers;
  const bool kept = again > 0 && place_in_stage(layers_of, layer) >= again;
  const bool has_experts = says(model.layer_has_experts);
  const bool sixteen_bit = stays_in_16_bits(*this, layer);
  if (model.pattern)
    return kind_of_shape(*this, model.pattern->shape_of[static_cast<std::size_t>(layer)], kept,
                         sixteen_bit);
  const bool windowed =
      plan.fused_attention && model.window < plan.seq && says(model.layer_is_local);
  return {has_experts, windowed ? model.window : 0, kept, 0, sixteen_bit};
}

const Model& Scenario::shape_of(LayerKind kind) const {
  return model.pattern ? model.pattern->shapes[static_cast<std::size_t>(kind.shape)] : model;
}

const Model& Scenario::expert_shape() const {
  if (!model.pattern) return model;
  for (const Model& shape : model.pattern->shapes)
    if (shape.experts) return shape;
  return model.pattern->shapes.front();
}

int Scenario::layers_of_kind(LayerKind kind, int stage) const {
  int count = 0;
  for (int chunk = 0; chunk < plan.chunks(); ++chunk) {
    const int part = plan.virtual_stage(stage, chunk), first = first_layer(part);
    for (int l = 0; l < layers_of[static_cast<std::size_t>(part)]; ++l)
      count += kind_of(first + l) == kind;
  }
  return count;
}

std::vector<LayerKind> Scenario::kinds() const {
  std::vector<LayerKind> found;
  const auto add = [&](LayerKind kind) {
    if (std::find(found.begin(), found.end(), kind) == found.end()) found.push_back(kind);
  };
  for (int layer = 0; layer < model.layers; ++layer) add(kind_of(layer));
  if (model.prediction_layers > 0 && model.pattern)
    for (const LayerKind kind : prediction_kinds()) add(kind);
  return found;
}

std::vector<LayerKind> Scenario::prediction_kinds() const {
  const LayerKind last = kind_of(model.layers - 1);
  if (!model.pattern) return {last};
  std::vector<LayerKind> kinds;
  for (const int place : model.pattern->prediction_shapes)
    kinds.push_back(kind_of_shape(*this, place, last.kept, last.sixteen_bit));
  return kinds;
}

int Scenario::dense_layers_before(int layer) const {
  int count = 0;
  for (int l = 0; l < layer; ++l) count += !kind_of(l).has_experts;
  return count;
}

std::vector<int> split_layers(int layers, int stages) {
  const auto equal = [&](int padded) {
    return std::vector<int>(static_cast<std::size_t>(stages), padded / stages);
  };
  if (layers >= stages && layers % stages == 0) return equal(layers);
  for (int missing : {2, 1, 3}) {
    if (stages < 2 || (layers + missing) % stages != 0) continue;
    std::vector<int> split = equal(layers + missing);
    split.back() -= (missing + 1) / 2;
    split.front() -= missing / 2;
    // Stages that only embed or only have the head are what plans of as many chunks as layers mean.
    if (split.back() < 0 || split.front() < 0 || (stages > 2 && split[1] < 1)) continue;
    return split;
  }
  return {};
}

namespace {

// Megatron Core, transformer/transformer_config.py: cpu_offloading_num_layers below num_layers,
// one pipeline stage, no recomputation.
MaybeRefused refuse_offloaded_layers(const Model& model, const Plan& plan) {
  if (plan.offload_layers == 0) return {};
  const std::string remedy = "leave offload_layers out";
  if (plan.offload_layers >= model.layers)
    return infeasible("offload_layers",
                      "of " + std::to_string(model.layers) + " layers " +
                          std::to_string(plan.offload_layers) +
                          " cannot be offloaded: the last one's activations are needed at once",
                      "use offload_layers=" + std::to_string(model.layers - 1) + " or less");
  if (plan.pp > 1)
    return infeasible(
        "offload_layers",
        "activations are offloaded with one pipeline stage only, and pp=" + std::to_string(plan.pp),
        remedy + ", or use pp=1");
  if (plan.recompute != Recompute::none)
    return infeasible("offload_layers",
                      "what is computed again is not offloaded as well, and recompute=" +
                          recompute_text(plan.recompute),
                      remedy + ", or use recompute=none");
  return {};
}

bool has_attention(const Model& model) {
  if (!model.pattern) return model.heads > 0;
  const auto& shapes = model.pattern->shapes;
  return std::any_of(shapes.begin(), shapes.end(),
                     [](const Model& shape) { return shape.heads > 0; });
}

// The checks of Megatron Core, transformer/transformer_config.py.
MaybeRefused refuse_offloaded_modules(const Model& model, const Plan& plan) {
  const OffloadModules& modules = plan.offload_modules;
  if (modules.empty()) return {};
  const auto no = [&](const std::string& problem, const std::string& remedy) {
    return infeasible("offload_modules", problem, remedy);
  };
  using enum OffloadModule;
  const bool fused = modules.contains(fused_group_mlp);
  const bool of_experts = fused || modules.contains(expert_fc1) || modules.contains(moe_act);
  if (plan.offload_layers > 0)
    return no("whole layers and parts of them are not offloaded together",
              "leave offload_modules or offload_layers out");
  if (plan.recompute.kind == Recompute::full)
    return no("full recomputation keeps nothing of a layer but its input",
              "leave offload_modules out, or use recompute=selective:core_attn");
  if (plan.schedule->splits_backward())
    return no("offloading is known for backward passes that are whole, and schedule=" +
                  plan.schedule->name() + " splits them",
              "leave offload_modules out, or use schedule=1f1b");
  const bool of_attention =
      modules.contains(attn_norm) || modules.contains(qkv_linear) || modules.contains(core_attn);
  if (of_attention && !has_attention(model))
    return no("the model has no attention", "name other parts, or leave it out");
  if (of_experts && !model.experts)
    return no("the model has no routed experts", "name parts of attention, or leave it out");
  if (of_experts && plan.recompute.selects(RecomputeModule::moe))
    return no("recompute=" + recompute_text(plan.recompute) +
                  " computes all of the experts again, so that nothing of them is kept",
              "leave moe out of recompute, or the experts' parts out of offload_modules");
  if (modules.contains(attn_proj) && !modules.contains(core_attn))
    return no("core_attn's backward pass needs the input of attn_proj on the GPU",
              "use core_attn+attn_proj, or leave attn_proj out");
  if (fused && (modules.contains(expert_fc1) || modules.contains(moe_act)))
    return no("fused_group_mlp has all that expert_fc1 and moe_act name",
              "name fused_group_mlp alone, or leave it out");
  return {};
}

}  // namespace

MaybeRefused refuse_activations(const Model& model, const Plan& plan) {
  if (auto no = refuse_offloaded_layers(model, plan)) return no;
  if (auto no = refuse_offloaded_modules(model, plan)) return no;
  for (const auto& [key, layers] : {std::pair{"bf16_start_layers", plan.bf16_start_layers},
                                    std::pair{"bf16_end_layers", plan.bf16_end_layers}})
    if (layers > model.layers)
      return infeasible(key,
                        "the model has " + std::to_string(model.layers) + " layers, not " +
                            std::to_string(layers),
                        "name fewer layers, or use dtype=bf16 for all");
  const std::string formats = alternatives(names_of_products(8));
  if (plan.fp8_attention && (facts(plan.dtype).bits != 8 || !plan.fused_attention))
    return infeasible(
        "fp8_attention",
        "attention in 8 bits is a fused kernel of a step in " + formats + ", and " +
            (plan.fused_attention ? "dtype=" + name(plan.dtype) : std::string{"attention=unfused"}),
        plan.fused_attention ? "use dtype=" + formats + ", or leave it out"
                             : "use attention=flash, or leave it out");
  return {};
}

}  // namespace orrery
