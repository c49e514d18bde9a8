#include <algorithm>
#include <map>

#include "sim/core/error.hpp"
#include "sim/formats/megatron/megatron_parts.hpp"
#include "sim/model/layer_pattern.hpp"
#include "sim/model/mixers/linear_attention.hpp"
#include "sim/model/mixers/mamba.hpp"

namespace orrery {
namespace {

const Place of_model{"", "--model"};

class PatternWriter {
 public:
  explicit PatternWriter(const Scenario& s) : s_{s}, pattern_{*s.model.pattern} {}

  HybridFlags write() {
    if (pattern_.streams > 1) fail("has no residual streams", "hyper-connections");
    if (pattern_.norms_of_part != 1) fail("has one norm before each part of a layer", "more norms");
    result_.sizes = s_.model;
    result_.sizes.pattern = nullptr;
    result_.sizes.norms_per_layer = 2;
    std::string layers;  // All letters, which checks that there is a flag for each.
    for (const LayerPattern::Layer& layer : pattern_.layers) layers += letters_of(layer);
    std::string module;
    for (const LayerPattern::Layer& layer : pattern_.prediction) module += letters_of(layer);
    result_.cuts_itself = !is_of_gpt(layers, module);
    if (result_.cuts_itself)
      layer_pattern(module);
    else
      linear_attention(layers);
    if (s_.model.prediction_layers > 0 && s_.model.prediction_repeats)
      flag("mtp-use-repeated-layer");
    return std::move(result_);
  }

 private:
  [[noreturn]] static void fail(const std::string& has, const std::string& of) {
    fail_infeasible(of_model, "Megatron-LM " + has + ", and the model has " + of,
                    "export a model without them");
  }
  void flag(const std::string& text) { result_.flags.push_back("--" + text); }
  void flag(const std::string& name, std::int64_t value) {
    flag(name + " " + std::to_string(value));
  }

  // Gated delta nets and attention in layers of two parts; a prediction module is like the last.
  bool is_of_gpt(const std::string& layers, const std::string& module) const {
    for (const LayerPattern::Layer& layer : pattern_.layers)
      if (layer.mixer < 0 || layer.ffn < 0) return false;
    return layers.find('G') != layers.npos && layers.find('M') == layers.npos &&
           (s_.model.prediction_layers == 0 || (module.size() == 2 && layers.ends_with(module)));
  }

  void layer_pattern(const std::string& module) {
    std::string text;
    for (std::size_t v = 0; v < s_.layers_of.size(); ++v) {
      if (v > 0) text += "|";
      const int first = s_.first_layer(static_cast<int>(v));
      for (int l = first; l < first + s_.layers_of[v]; ++l)
        text += letters_of(pattern_.layers[static_cast<std::size_t>(l)]);
    }
    for (int i = 0; i < s_.model.prediction_layers; ++i) text += "/" + module;
    flag("spec megatron.core.models.hybrid.hybrid_layer_specs hybrid_stack_spec");
    flag("hybrid-layer-pattern '" + text + "'");
  }

  void linear_attention(const std::string& layers) {
    std::string listed;
    std::size_t every = 0;
    for (std::size_t l = 0; l < pattern_.layers.size(); ++l) {
      const bool is_delta = layers[2 * l] == 'G';
      if (!is_delta && every == 0) every = l + 1;
      listed += std::string{l > 0 ? "," : ""} + (is_delta ? "1" : "0");
    }
    bool even = every > 0;
    for (std::size_t l = 0; l < pattern_.layers.size(); ++l)
      even = even && (layers[2 * l] == 'G') == ((l + 1) % every != 0);
    flag("experimental-attention-variant gated_delta_net");
    flag("linear-attention-freq " + (even ? std::to_string(every) : "'[" + listed + "]'"));
  }

  std::string letters_of(const LayerPattern::Layer& layer) {
    std::string text;
    if (layer.mixer >= 0) text += mixer_letter(layer);
    if (layer.ffn >= 0) text += ffn_letter(layer);
    return text;
  }

  // True once for the first mixer or feed-forward part of a letter; all others must be this one.
  bool is_new(char letter, int place, const std::string& what) {
    const auto [known, fresh] = of_letter_.try_emplace(letter, place);
    if (!fresh && known->second != place) fail("has sizes for one kind of " + what, "two kinds");
    return fresh;
  }

  char mixer_letter(const LayerPattern::Layer& layer) {
    const Mixer& mixer = *pattern_.mixers[static_cast<std::size_t>(layer.mixer)].mixer;
    if (const auto* mamba = dynamic_cast<const Mamba2*>(&mixer)) {
      if (is_new('M', layer.mixer, "Mamba")) mamba_flags(*mamba);
      return 'M';
    }
    if (const auto* delta = dynamic_cast<const GatedDeltaNet*>(&mixer)) {
      if (is_new('G', layer.mixer, "gated delta nets")) delta_flags(*delta);
      return 'G';
    }
    const Model& shape = shape_of(layer);
    if (shape.heads == 0 || shape.mixer || mixer.module(s_.model.hidden))
      fail("has no such layers", mixer.kind() + " layers");
    const char letter = shape.latent ? '+' : '*';
    if (of_letter_.contains(shape.latent ? '*' : '+'))
      fail("has one kind of attention in a pattern", "latent attention beside another");
    if (is_new(letter, layer.mixer, "attention")) attention_sizes(shape);
    return letter;
  }

  char ffn_letter(const LayerPattern::Layer& layer) {
    const FeedForward& ffn = pattern_.ffns[static_cast<std::size_t>(layer.ffn)].ffn;
    const char letter = ffn.experts ? 'E' : '-';
    if (!is_new(letter, layer.ffn, ffn.experts ? "experts" : "MLPs")) return letter;
    result_.sizes.gated = ffn.gated;
    result_.sizes.mlp_bias = ffn.bias;
    if (ffn.experts && ffn.width > 0) fail("has no MLPs beside experts", "some");
    if (!ffn.experts || result_.sizes.ffn == 0)
      result_.sizes.ffn = ffn.experts ? ffn.experts->ffn : ffn.width;
    return letter;
  }

  const Model& shape_of(const LayerPattern::Layer& layer) const {
    for (std::size_t l = 0; l < pattern_.layers.size(); ++l)
      if (pattern_.layers[l] == layer)
        return pattern_.shapes[static_cast<std::size_t>(pattern_.shape_of[l])];
    const auto at = static_cast<std::size_t>(
        std::find(pattern_.prediction.begin(), pattern_.prediction.end(), layer) -
        pattern_.prediction.begin());
    return pattern_.shapes[static_cast<std::size_t>(pattern_.prediction_shapes[at])];
  }

  void attention_sizes(const Model& shape) {
    Model& sizes = result_.sizes;
    sizes.heads = shape.heads;
    sizes.kv_heads = shape.kv_heads;
    sizes.head_dim = shape.head_dim;
    sizes.latent = shape.latent;
    sizes.rotary = shape.rotary;
    sizes.qk_norm = shape.qk_norm;
    sizes.wide_qk_norm = shape.wide_qk_norm;
    sizes.qkv_bias = shape.qkv_bias;
    sizes.out_bias = shape.out_bias;
    if (shape.output_gate) flag("attention-output-gate");
    if (shape.window > 0)
      result_.left_out.push_back("window=" + std::to_string(shape.window) +
                                 ": patterns of layers have no windows");
  }

  void mamba_flags(const Mamba2& mamba) {
    flag("mamba-num-heads", mamba.heads);
    flag("mamba-head-dim", mamba.head_dim);
    flag("mamba-state-dim", mamba.state);
    flag("mamba-num-groups", mamba.groups);
    if (mamba.conv != 4)
      result_.left_out.push_back("conv=" + std::to_string(mamba.conv) + ": Megatron-LM has 4");
  }

  void delta_flags(const GatedDeltaNet& delta) {
    flag("linear-num-key-heads", delta.key_heads);
    flag("linear-num-value-heads", delta.value_heads);
    flag("linear-key-head-dim", delta.key_dim);
    flag("linear-value-head-dim", delta.value_dim);
    flag("linear-conv-kernel-dim", delta.conv);
  }

  const Scenario& s_;
  const LayerPattern& pattern_;
  HybridFlags result_;
  std::map<char, int> of_letter_;
};

}  // namespace

HybridFlags hybrid_flags(const Scenario& scenario) { return PatternWriter{scenario}.write(); }

}  // namespace orrery
