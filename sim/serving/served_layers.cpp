#include "sim/serving/served_layers.hpp"

#include <algorithm>
#include <span>

#include "sim/model/layer_pattern.hpp"
#include "sim/serving/deployment.hpp"

namespace orrery {
namespace {

ServedLayers alike(const Model& model, const Deployment& plan) {
  ServedLayers of;
  of.shape = model;
  of.layers = model.layers;
  of.wide = static_cast<int>(2 * plan.ends_16bit);
  for (int layer = 0; layer < model.layers; ++layer) {
    const auto at = static_cast<std::size_t>(layer);
    const bool experts =
        model.experts && (model.layer_has_experts.empty() || model.layer_has_experts[at]);
    ++(experts ? of.experts : of.dense);
    const bool local = !model.layer_is_local.empty() && model.layer_is_local[at];
    ++of.windows[local ? model.window : 0];
  }
  return of;
}

// DeepSeek-V4's: those of the tables streams_pre and streams_post.
constexpr std::int64_t measured_streams = 4;

std::span<const Model> shapes_of(const Model& model) {
  return model.pattern ? std::span{model.pattern->shapes} : std::span{&model, 1};
}

}  // namespace

double ServedLayers::whole_layers() const {
  const int parts = static_cast<int>(has_mixer(shape)) + static_cast<int>(has_feed_forward(shape));
  return 0.5 * layers * parts;
}

std::vector<ServedLayers> served_layers(const Model& model, const Deployment& plan) {
  if (!model.pattern) return {alike(model, plan)};
  const LayerPattern& pattern = *model.pattern;
  std::vector<ServedLayers> all(pattern.shapes.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].shape = pattern.shapes[i];
    all[i].has_streams = pattern.streams > 1;
    if (!all[i].shape.mixer) continue;
    all[i].state = all[i].shape.mixer->work(model.hidden, plan.tp);
    all[i].module = all[i].shape.mixer->module(model.hidden);
  }
  for (int layer = 0; layer < model.layers; ++layer) {
    ServedLayers& of =
        all[static_cast<std::size_t>(pattern.shape_of[static_cast<std::size_t>(layer)])];
    ++of.layers;
    if (of.shape.experts)
      ++of.experts;
    else if (of.shape.ffn > 0)
      ++of.dense;
    if (of.shape.heads > 0) ++of.windows[of.shape.window];
    if (plan.is_16bit(layer, model.layers)) ++of.wide;
  }
  // Those of prediction modules alone.
  std::erase_if(all, [](const ServedLayers& of) { return of.layers == 0; });
  return all;
}

double whole_layers(const Model& model) {
  if (!model.pattern) return model.layers;
  double sum = 0.0;
  for (const ServedLayers& of : served_layers(model, {})) sum += of.whole_layers();
  return sum;
}

std::vector<CutHeads> cut_heads(const Model& model) {
  std::vector<CutHeads> all;
  for (const Model& shape : shapes_of(model)) {
    if (shape.heads > 0)
      all.push_back({"heads", shape.heads, shape.latent ? 0 : shape.kv_heads, "key heads"});
    if (!shape.mixer) continue;
    if (const auto work = shape.mixer->module(model.hidden))
      all.push_back({"heads", work->heads, work->kv_heads, "key heads"});
    const std::string kind = shape.mixer->kind();
    if (const auto work = shape.mixer->work(model.hidden, 1))
      all.push_back({"heads of " + kind, work->heads,
                     work->groups == work->heads ? 0 : work->groups, "groups of " + kind});
  }
  return all;
}

std::vector<std::int64_t> mlp_widths(const Model& model) {
  std::vector<std::int64_t> all;
  for (const Model& shape : shapes_of(model))
    if (shape.ffn > 0 && (!model.pattern || !shape.experts)) all.push_back(shape.ffn);
  return all;
}

std::vector<std::int64_t> query_widths(const Model& model) {
  std::vector<std::int64_t> all;
  for (const Model& shape : shapes_of(model))
    if (shape.heads > 0 && !shape.latent) all.push_back(shape.heads * shape.head_dim);
  return all;
}

bool has_joint_prompts(const Model& model) {
  return model.pattern && std::ranges::any_of(model.pattern->shapes, [](const Model& shape) {
           return shape.mixer != nullptr;
         });
}

namespace {

// A module of attention of some layers does what `is` asks.
template <class Question>
bool any_module(const Model& model, const Question& is) {
  return model.pattern && std::ranges::any_of(model.pattern->shapes, [&](const Model& shape) {
           const auto module = shape.mixer ? shape.mixer->module(model.hidden) : std::nullopt;
           return module && is(*module);
         });
}

}  // namespace

bool has_attention_module(const Model& model) {
  return any_module(model, [](const AttentionModule&) { return true; });
}

bool has_compressed_attention(const Model& model) {
  return any_module(model, [](const AttentionModule& module) { return module.values == 0.0; });
}

bool has_states(const Model& model) {
  return model.pattern && std::ranges::any_of(model.pattern->shapes, [&](const Model& shape) {
           return shape.mixer && shape.mixer->work(model.hidden, 1);
         });
}

void need_priced_mixers(const Model& model, const Place& at) {
  if (!model.pattern) return;
  const LayerPattern& pattern = *model.pattern;
  const std::string remedy = "orrery check --model shows their sizes";
  if (pattern.streams > 1 && pattern.streams != measured_streams)
    fail_infeasible(at,
                    "serving has prices of 4 residual streams, and the model has " +
                        std::to_string(pattern.streams),
                    remedy);
  const auto is_module = [&](const Model& shape) {
    return shape.mixer && shape.mixer->module(model.hidden);
  };
  for (const Model& shape : pattern.shapes) {
    if (shape.mixer && !shape.mixer->work(model.hidden, 1) && !is_module(shape))
      fail_infeasible(
          at,
          "serving has no prices yet of such " + shape.mixer->kind() + " layers as the model has",
          remedy);
    if (shape.experts && *shape.experts != *model.experts)
      fail_infeasible(at,
                      "serving has prices of layers whose experts are alike, and the model's are "
                      "not",
                      remedy);
  }
  if (std::ranges::none_of(pattern.shapes,
                           [&](const Model& shape) { return shape.heads > 0 || is_module(shape); }))
    fail_infeasible(at, "serving has no prices of models without any attention yet", remedy);
}

}  // namespace orrery
