// Classes of transformers, and of files published with weights, whose layers are of several kinds.
#include "sim/model/hugging_face_patterns.hpp"

#include <algorithm>

#include "sim/core/value_list.hpp"
#include "sim/model/hugging_face_families.hpp"
#include "sim/model/layer_pattern.hpp"
#include "sim/model/mixers/attention.hpp"
#include "sim/model/mixers/latent_attention.hpp"
#include "sim/model/mixers/linear_attention.hpp"
#include "sim/model/mixers/mamba.hpp"
#include "sim/model/mixers/short_convolution.hpp"
#include "sim/model/mixers/side_by_side.hpp"

namespace orrery {
namespace {

// These take attention, the MLP and experts from the keys that all families share.

std::shared_ptr<Attention> attention_of(const Model& model) {
  auto attention = std::make_shared<Attention>();
  attention->heads = model.heads;
  attention->kv_heads = model.kv_heads;
  attention->head_dim = attention->value_dim = model.head_dim;
  attention->rotary = model.rotary;
  attention->qk_norm = model.qk_norm;
  attention->wide_qk_norm = model.wide_qk_norm;
  attention->qkv_bias = model.qkv_bias;
  attention->out_bias = model.out_bias;
  return attention;
}

std::shared_ptr<LatentAttentionMixer> latent_attention_of(const Model& model) {
  auto attention = std::make_shared<LatentAttentionMixer>();
  attention->heads = model.heads;
  attention->q_rank = model.latent->q_rank;
  attention->kv_rank = model.latent->kv_rank;
  attention->nope_dim = model.latent->nope_dim;
  attention->rope_dim = model.latent->rope_dim;
  attention->value_dim = model.latent->v_dim;
  return attention;
}

FeedForward mlp_of(const Model& model) {
  FeedForward ffn;
  ffn.width = model.ffn;
  ffn.gated = model.gated;
  ffn.bias = model.mlp_bias;
  return ffn;
}

FeedForward experts_of(const Model& model) {
  FeedForward ffn;
  ffn.gated = model.gated;
  ffn.bias = model.mlp_bias;
  ffn.experts = model.experts;
  return ffn;
}

// A pattern that is put together layer by layer.
class PatternBuilder {
 public:
  int mixer(const std::string& name, MixerPointer mixer) {
    pattern_.mixers.push_back({name, std::move(mixer)});
    return static_cast<int>(pattern_.mixers.size()) - 1;
  }
  int ffn(const std::string& name, FeedForward ffn) {
    pattern_.ffns.push_back({name, std::move(ffn)});
    return static_cast<int>(pattern_.ffns.size()) - 1;
  }
  void streams(std::int64_t streams) { pattern_.streams = streams; }
  void layer(int mixer, int ffn) { pattern_.layers.push_back({mixer, ffn}); }
  /// A layer of each `mixer_of(layer)`, with the experts that the shared keys place, or the MLP.
  template <class MixerOf>
  void layers(const Model& model, const FeedForward& experts, const MixerOf& mixer_of) {
    const auto& placed = model.layer_has_experts;
    const bool some = std::find(placed.begin(), placed.end(), true) != placed.end();
    const bool all =
        !placed.empty() && std::find(placed.begin(), placed.end(), false) == placed.end();
    const int mlp = all ? -1 : ffn("mlp", mlp_of(model));
    const int moe = some ? ffn("moe", experts) : -1;
    for (int at = 0; at < model.layers; ++at)
      layer(mixer_of(at), some && placed[static_cast<std::size_t>(at)] ? moe : mlp);
  }

  /// The same with two mixers.
  void layers(const Model& model, const FeedForward& experts, const std::vector<bool>& is_second,
              int first, int second) {
    layers(model, experts,
           [&](int at) { return is_second[static_cast<std::size_t>(at)] ? second : first; });
  }

  /// A prediction module is like the last layer, but has this mixer.
  void predict_with(int mixer) { pattern_.prediction = {{mixer, pattern_.layers.back().ffn}}; }

  /// The pattern takes the place of what the shared keys said of all layers.
  void finish(Model& model) {
    pattern_.norms_of_part = std::max(1, model.norms_per_layer / 2);
    model.layers = static_cast<int>(pattern_.layers.size());
    model.pattern = std::make_shared<const LayerPattern>(std::move(pattern_));
    model.heads = model.kv_heads = model.head_dim = model.ffn = model.window = 0;
    model.latent.reset();
    model.experts.reset();
    model.layer_has_experts.clear();
    model.layer_is_local.clear();
  }

 private:
  LayerPattern pattern_;
};

// Makes a pattern of two mixers. Layers that `is_second` marks have the second one.
void of_two_mixers(Model& model, const FeedForward& experts, const std::vector<bool>& is_second,
                   const LayerPattern::NamedMixer& first, const LayerPattern::NamedMixer& second) {
  PatternBuilder pattern;
  const int one = pattern.mixer(first.name, first.mixer);
  const int other = pattern.mixer(second.name, second.mixer);
  pattern.layers(model, experts, is_second, one, other);
  pattern.finish(model);
}

// The entries of a list with one a layer.
std::vector<JsonValue> entries_of(const JsonValue& list, int layers) {
  std::vector<JsonValue> entries = list.elements();
  if (entries.size() != static_cast<std::size_t>(layers))
    list.fail("has " + std::to_string(entries.size()) + " entries for " + std::to_string(layers) +
                  " layers",
              "write one a layer");
  return entries;
}

// Tells the layers of the second of two kinds by a list of words.
std::vector<bool> second_of(const JsonValue& list, int layers, const std::string& first,
                            const std::string& second) {
  std::vector<bool> is_second;
  for (const JsonValue& entry : entries_of(list, layers)) {
    const std::string word = entry.text();
    if (word != first && word != second)
      entry.fail("'" + shown_text(word) + "' is not a layer type that is known",
                 "write " + first + " or " + second);
    is_second.push_back(word == second);
  }
  return is_second;
}

// The same by a list of 0 and 1.
std::vector<bool> ones_of(const JsonValue& list, int layers) {
  std::vector<bool> is_one;
  for (const JsonValue& entry : entries_of(list, layers))
    is_one.push_back(entry.integer(0, 1) == 1);
  return is_one;
}

// The layers whose numbers a list has; the first layer's number is `first`.
std::vector<bool> listed_layers(const JsonValue& list, int layers, int first = 0) {
  std::vector<bool> is_listed(static_cast<std::size_t>(layers));
  for (const JsonValue& layer : list.elements())
    is_listed[static_cast<std::size_t>(layer.integer(first, first + layers - 1) - first)] = true;
  return is_listed;
}

std::vector<bool> full_layers(ConfigKeys& config, const Model& model) {
  const auto types = config.find({"layer_types"});
  const std::int64_t every = config.size({"full_attention_interval"}, max_layers, 4);
  if (types) return second_of(*types, model.layers, "linear_attention", "full_attention");
  std::vector<bool> is_full;
  for (int layer = 0; layer < model.layers; ++layer) is_full.push_back((layer + 1) % every == 0);
  return is_full;
}

std::shared_ptr<GatedDeltaNet> delta_net_of(ConfigKeys& config) {
  auto net = std::make_shared<GatedDeltaNet>();
  const auto size = [&](const char* key, std::int64_t absent) {
    return config.size({key}, max_mixer_size, absent);
  };
  net->key_heads = size("linear_num_key_heads", 16);
  net->value_heads = size("linear_num_value_heads", 32);
  net->key_dim = size("linear_key_head_dim", 128);
  net->value_dim = size("linear_value_head_dim", 128);
  net->conv = size("linear_conv_kernel_dim", 4);
  return net;
}

// Layers of a state space under mamba_ keys (Bamba, Granite 4, Falcon-H1).
std::shared_ptr<Mamba2> mamba2_of(ConfigKeys& config, const Model& model) {
  auto mamba = std::make_shared<Mamba2>();
  const auto size = [&](const char* key, std::optional<std::int64_t> absent) {
    return config.size({key}, max_mixer_size, absent);
  };
  mamba->heads = size("mamba_n_heads", 128);
  mamba->groups = size("mamba_n_groups", 1);
  mamba->state = size("mamba_d_state", 256);
  mamba->conv = size("mamba_d_conv", 4);
  mamba->chunk = size("mamba_chunk_size", 256);
  const std::int64_t expand = size("mamba_expand", 2);
  const auto stated = config.find({"mamba_d_ssm"});
  const std::int64_t inner = stated ? stated->integer(1, max_width) : expand * model.hidden;
  const auto head = config.find({"mamba_d_head"});
  mamba->head_dim =
      head && head->is_number() ? head->integer(1, max_mixer_size) : inner / mamba->heads;
  if (mamba->heads * mamba->head_dim != inner)
    config.json().fail(std::to_string(mamba->heads) + " heads of " +
                           std::to_string(mamba->head_dim) + " do not make the inner width, " +
                           std::to_string(inner),
                       "correct mamba_n_heads, mamba_d_head or mamba_d_ssm");
  config.refuse_if_set("mamba_proj_bias", "biases of a state space's products are not modelled");
  if (!config.flag("mamba_conv_bias", true))
    config.json()
        .at("mamba_conv_bias")
        .fail("is false, which is not modelled", "take another model");
  return mamba;
}

std::shared_ptr<Mamba2> nemotron_mamba_of(ConfigKeys& config) {
  auto mamba = std::make_shared<Mamba2>();
  const auto size = [&](const char* key, std::int64_t absent) {
    return config.size({key}, max_mixer_size, absent);
  };
  mamba->heads = size("mamba_num_heads", 128);
  mamba->head_dim = size("mamba_head_dim", 64);
  mamba->state = size("ssm_state_size", 128);
  mamba->groups = size("n_groups", 8);
  mamba->conv = size("conv_kernel", 4);
  mamba->chunk = size("chunk_size", 256);
  config.refuse_if_set("use_bias", "biases of a state space's products are not modelled");
  config.refuse_if_set("mamba_proj_bias", "biases of a state space's products are not modelled");
  return mamba;
}

}  // namespace

void read_gated_delta_nets(ConfigKeys& config, Model& model) {
  const std::vector<bool> is_full = full_layers(config, model);
  const auto net = delta_net_of(config);
  auto attention = attention_of(model);
  attention->output_gate = config.flag("attn_output_gate", true);
  FeedForward experts = experts_of(model);
  if (experts.experts) experts.experts->shared_gate = true;
  const auto& placed = model.layer_has_experts;
  if (std::find(placed.begin(), placed.end(), false) != placed.end())
    config.json().at("intermediate_size");  // Of layers without experts.
  model.prediction_layers =
      static_cast<int>(config.count({"mtp_num_hidden_layers"}, max_layers, 0));
  of_two_mixers(model, experts, is_full, {"gdn", net}, {"full", attention});
}

void read_olmo_hybrid(ConfigKeys& config, Model& model) {
  const std::vector<bool> is_full = full_layers(config, model);
  of_two_mixers(model, {}, is_full, {"gdn", delta_net_of(config)}, {"full", attention_of(model)});
}

// Its lists count layers from 1.
void read_kimi_linear(ConfigKeys& config, Model& model) {
  auto delta = std::make_shared<KimiDelta>();
  const auto size = [&](const char* key) { return config.size({key}, max_mixer_size, {}); };
  const JsonValue linear = config.required("linear_attn_config");
  delta->heads = linear.at("num_heads").integer(1, max_mixer_size);
  delta->head_dim = linear.at("head_dim").integer(1, max_mixer_size);
  delta->conv = linear.at("short_conv_kernel_size").integer(1, max_mixer_size);
  if (const auto full_rank = linear.find("use_full_rank_gate"))
    delta->full_rank_gate = full_rank->boolean();
  const std::vector<bool> is_full = listed_layers(linear.at("full_attn_layers"), model.layers, 1);
  auto latent = latent_attention_of(model);
  latent->output_gate = config.flag("mla_use_output_gate", false);
  FeedForward experts = experts_of(model);
  if (experts.experts && config.find({"routed_expert_hidden_size"})) {
    experts.experts->latent = size("routed_expert_hidden_size");
    experts.experts->latent_norm = config.flag("latent_moe_use_norm", false);
  }
  of_two_mixers(model, experts, is_full, {"kda", delta}, {"mla", latent});
}

void read_sparse_latent(ConfigKeys& config, Model& model) {
  auto own = latent_attention_of(model);
  own->index = SparseIndex{config.size({"index_n_heads"}, max_mixer_size, {}),
                           config.size({"index_head_dim"}, max_mixer_size, {}),
                           config.size({"index_topk"}, max_tokens, {}), true};
  std::vector<bool> shares(static_cast<std::size_t>(model.layers));
  if (const auto types = config.find({"indexer_types"}))
    shares = second_of(*types, model.layers, "full", "shared");
  else if (const std::int64_t every = config.count({"index_topk_freq"}, max_layers, 0); every > 1) {
    const std::int64_t first = config.count({"index_skip_topk_offset"}, max_layers, 0);
    for (int layer = 0; layer < model.layers; ++layer)
      shares[static_cast<std::size_t>(layer)] =
          layer >= first && (layer - first) % every != every - 1;
  }
  PatternBuilder pattern;
  const int with_index = pattern.mixer("dsa", own);
  int sharing = -1;
  if (std::find(shares.begin(), shares.end(), true) != shares.end()) {
    auto other = std::make_shared<LatentAttentionMixer>(*own);
    other->index->own = false;
    sharing = pattern.mixer("dsa_shared", other);
  }
  pattern.layers(model, experts_of(model), shares, with_index, sharing);
  pattern.finish(model);
}

// A ratio a layer, and one for each prediction layer behind them.
void read_deepseek_v4(ConfigKeys& config, Model& model) {
  CompressedAttention base;
  base.heads = model.heads;
  base.head_dim = model.head_dim;
  base.q_rank = config.size({"q_lora_rank"}, max_mixer_size, {});
  base.out_groups = config.size({"o_groups"}, max_mixer_size, {});
  base.out_rank = config.size({"o_lora_rank"}, max_mixer_size, {});
  base.window = config.size({"sliding_window"}, max_tokens, {});
  const std::int64_t index_heads = config.size({"index_n_heads"}, max_mixer_size, {});
  const std::int64_t index_dim = config.size({"index_head_dim"}, max_mixer_size, {});
  const std::int64_t index_top = config.size({"index_topk"}, max_tokens, {});
  const JsonValue list = config.required("compress_ratios");
  const std::vector<JsonValue> ratios = list.elements();
  if (ratios.size() < static_cast<std::size_t>(model.layers))
    list.fail("has " + std::to_string(ratios.size()) + " entries for " +
                  std::to_string(model.layers) + " layers",
              "write one a layer");
  // Entries of few tokens are chosen by an index; of many, all are read.
  constexpr std::int64_t indexed_ratio = 4;
  PatternBuilder pattern;
  std::vector<std::pair<std::int64_t, int>> known;
  std::vector<int> mixers;
  const auto layers = static_cast<std::size_t>(model.layers);
  const bool predicts = model.prediction_layers > 0 && ratios.size() > layers;
  for (std::size_t layer = 0; layer < layers + (predicts ? 1 : 0); ++layer) {
    const std::int64_t ratio = ratios[layer].integer(0, max_mixer_size);
    auto found = std::find_if(known.begin(), known.end(),
                              [&](const auto& one) { return one.first == ratio; });
    if (found == known.end()) {
      auto mixer = std::make_shared<CompressedAttention>(base);
      mixer->ratio = ratio;
      if (ratio == indexed_ratio) {
        mixer->index_heads = index_heads;
        mixer->index_dim = index_dim;
        mixer->index_top = index_top;
      }
      const std::string name = ratio == 0 ? "window" : ratio == indexed_ratio ? "csa" : "hca";
      known.emplace_back(ratio, pattern.mixer(name, mixer));
      found = known.end() - 1;
    }
    mixers.push_back(found->second);
  }
  pattern.layers(model, experts_of(model),
                 [&](int layer) { return mixers[static_cast<std::size_t>(layer)]; });
  if (predicts) pattern.predict_with(mixers.back());
  pattern.streams(config.size({"hc_mult"}, 16, 1));
  pattern.finish(model);
}

void read_minimax_m3(ConfigKeys& config, Model& model) {
  const JsonValue sparse = config.required("sparse_attention_config");
  const auto size = [&](const char* key, std::int64_t absent) {
    const auto value = sparse.find(key);
    return value ? value->integer(1, max_mixer_size) : absent;
  };
  const std::vector<bool> is_sparse = ones_of(sparse.at("sparse_attention_freq"), model.layers);
  auto full = attention_of(model);
  auto blocks = std::make_shared<Attention>(*full);
  blocks->index = BlockIndex{size("sparse_num_index_heads", 4), size("sparse_index_dim", 128),
                             size("sparse_block_size", 128),
                             size("sparse_topk_blocks", 16) + size("sparse_local_block", 1)};
  if (const auto width = config.find({"dense_intermediate_size"}))
    model.ffn = width->integer(1, max_width);
  of_two_mixers(model, experts_of(model), is_sparse, {"full", full}, {"msa", blocks});
}

void read_lightning(ConfigKeys& config, Model& model) {
  auto lightning = std::make_shared<Lightning>();
  lightning->heads = model.heads;
  lightning->head_dim = model.head_dim;
  lightning->chunk = config.size({"block_size"}, max_mixer_size, 256);
  std::vector<bool> is_full;
  if (const auto types = config.find({"layer_types"}); types && !config.find({"attn_type_list"}))
    is_full = second_of(*types, model.layers, "linear_attention", "full_attention");
  else
    is_full = ones_of(config.required("attn_type_list"), model.layers);
  of_two_mixers(model, experts_of(model), is_full, {"lightning", lightning},
                {"full", attention_of(model)});
}

// Each layer is a mixer or a feed-forward part alone: a word of M, *, E and -, or a list of words.
void read_nemotron_h(ConfigKeys& config, Model& model) {
  std::vector<std::string> kinds;
  const auto blocks = config.find({"layers_block_type"});
  const auto letters = config.find({"hybrid_override_pattern"});
  if (blocks) {
    for (const JsonValue& entry : blocks->elements()) kinds.push_back(entry.text());
  } else if (letters) {
    for (const char letter : letters->text())
      kinds.push_back(letter == 'M'   ? "mamba"
                      : letter == '*' ? "attention"
                      : letter == 'E' ? "moe"
                      : letter == '-' ? "mlp"
                                      : std::string(1, letter));
  } else {
    config.json().at("hybrid_override_pattern");
  }
  const JsonValue stated = blocks ? *blocks : *letters;
  if (kinds.size() != static_cast<std::size_t>(model.layers))
    stated.fail("has " + std::to_string(kinds.size()) + " entries for " +
                    std::to_string(model.layers) + " layers",
                "write one a layer");
  const auto has = [&](const char* kind) {
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  };
  PatternBuilder pattern;
  const int mamba = has("mamba") ? pattern.mixer("mamba2", nemotron_mamba_of(config)) : -1;
  const int full = has("attention") ? pattern.mixer("full", attention_of(model)) : -1;
  int moe = -1;
  if (has("moe")) {
    read_family_experts(config, {.width = of_ffn, .correction_bias = true}, model);
    FeedForward experts = experts_of(model);
    experts.experts->latent = config.count({"moe_latent_size"}, max_width, 0);
    moe = pattern.ffn("moe", experts);
  }
  const int mlp = has("mlp") ? pattern.ffn("mlp", mlp_of(model)) : -1;
  for (const std::string& kind : kinds) {
    if (kind == "mamba")
      pattern.layer(mamba, -1);
    else if (kind == "attention")
      pattern.layer(full, -1);
    else if (kind == "moe")
      pattern.layer(-1, moe);
    else if (kind == "mlp")
      pattern.layer(-1, mlp);
    else
      stated.fail("'" + shown_text(kind) + "' is not a layer that is known",
                  "write M, * E or -, or mamba, attention, moe or mlp");
  }
  pattern.finish(model);
}

void read_granite_hybrid(ConfigKeys& config, Model& model) {
  const auto positions = config.find({"position_embedding_type"});
  model.rotary = positions && positions->text() == "rope";
  const std::vector<bool> is_full =
      second_of(config.required("layer_types"), model.layers, "mamba", "attention");
  PatternBuilder pattern;
  const int mamba = pattern.mixer("mamba2", mamba2_of(config, model));
  const int full = pattern.mixer("full", attention_of(model));
  // Without experts of its own, the shared one is the MLP (GraniteMoeHybridMLP).
  const std::int64_t experts = config.count({"num_local_experts"}, max_experts, 0);
  int ffn = -1;
  if (experts > 0) {
    read_family_experts(config, {.width = of_ffn}, model);
    ffn = pattern.ffn("moe", experts_of(model));
  } else {
    FeedForward mlp = mlp_of(model);
    mlp.width = config.size({"shared_intermediate_size"}, max_width, {});
    config.find({"num_experts_per_tok"});
    ffn = pattern.ffn("mlp", mlp);
  }
  for (int layer = 0; layer < model.layers; ++layer)
    pattern.layer(is_full[static_cast<std::size_t>(layer)] ? full : mamba, ffn);
  pattern.finish(model);
}

void read_bamba(ConfigKeys& config, Model& model) {
  const std::vector<bool> is_full =
      listed_layers(config.required("attn_layer_indices"), model.layers);
  of_two_mixers(model, {}, is_full, {"mamba2", mamba2_of(config, model)},
                {"full", attention_of(model)});
}

void read_falcon_h1(ConfigKeys& config, Model& model) {
  auto mamba = mamba2_of(config, model);
  mamba->norm = config.flag("mamba_rms_norm", false);
  auto both = std::make_shared<SideBySide>();
  both->mixers = {mamba, attention_of(model)};
  PatternBuilder pattern;
  const int parallel = pattern.mixer("parallel", both);
  pattern.layers(model, {}, [&](int) { return parallel; });
  pattern.finish(model);
}

void read_jamba(ConfigKeys& config, Model& model) {
  auto mamba = std::make_shared<Mamba1>();
  const auto number = [&](const char* key, std::int64_t absent) {
    return config.count({key}, max_mixer_size, absent);
  };
  mamba->inner = config.size({"mamba_expand"}, max_mixer_size, 2) * model.hidden;
  mamba->state = config.size({"mamba_d_state"}, max_mixer_size, 16);
  mamba->conv = config.size({"mamba_d_conv"}, max_mixer_size, 4);
  const auto rank = config.find({"mamba_dt_rank"});
  mamba->time_rank =
      rank && rank->is_number() ? rank->integer(1, max_mixer_size) : (model.hidden + 15) / 16;
  mamba->norms = true;
  config.refuse_if_set("mamba_proj_bias", "biases of a state space's products are not modelled");
  const std::int64_t period = config.size({"attn_layer_period"}, max_layers, 8);
  const std::int64_t offset = number("attn_layer_offset", 4);
  const std::int64_t of_experts = config.size({"expert_layer_period"}, max_layers, 2);
  const std::int64_t first_expert = number("expert_layer_offset", 1);
  model.layer_has_experts.clear();
  // One expert is an MLP (transformers' modeling_jamba.py).
  if (model.experts && model.experts->count == 1) model.experts.reset();
  for (int layer = 0; layer < model.layers && model.experts; ++layer)
    model.layer_has_experts.push_back(layer % of_experts == first_expert);
  PatternBuilder pattern;
  const int state = pattern.mixer("mamba1", mamba);
  const int full = pattern.mixer("full", attention_of(model));
  pattern.layers(model, experts_of(model),
                 [&](int layer) { return layer % period == offset ? full : state; });
  pattern.finish(model);
}

// Short convolutions and attention, by a list of words or of the layers with attention.
void add_lfm2_layers(ConfigKeys& config, Model& model) {
  const auto indices = config.find({"full_attn_idxs"});
  const std::vector<bool> is_full =
      indices && !config.find({"layer_types"})
          ? listed_layers(*indices, model.layers)
          : second_of(config.required("layer_types"), model.layers, "conv", "full_attention");
  auto convolution = std::make_shared<ShortConvolution>();
  convolution->taps = config.size({"conv_L_cache"}, max_mixer_size, 3);
  convolution->bias = config.flag("conv_bias", false);
  of_two_mixers(model, experts_of(model), is_full, {"conv", convolution},
                {"full", attention_of(model)});
}

void read_lfm2(ConfigKeys& config, Model& model) {
  // The width as transformers' Lfm2MLP has it: two thirds, rounded up to whole multiples.
  if (config.flag("block_auto_adjust_ff_dim", true)) {
    model.ffn = 2 * model.ffn / 3;
    if (const auto factor = config.find({"block_ffn_dim_multiplier"}))
      model.ffn =
          static_cast<std::int64_t>(factor->number(0.01, 100.0) * static_cast<double>(model.ffn));
    const std::int64_t multiple = config.size({"block_multiple_of"}, max_width, 256);
    model.ffn = (model.ffn + multiple - 1) / multiple * multiple;
  } else {
    config.find({"block_ffn_dim_multiplier", "block_multiple_of"});
  }
  add_lfm2_layers(config, model);
}

void read_lfm2_moe(ConfigKeys& config, Model& model) {
  const std::int64_t dense = config.count({"num_dense_layers"}, max_layers, 2);
  for (int layer = 0; layer < model.layers; ++layer)
    if (layer < dense) model.layer_has_experts[static_cast<std::size_t>(layer)] = false;
  model.experts->correction_bias = config.flag("use_expert_bias", true);
  add_lfm2_layers(config, model);
}

// Global layers have other heads than local ones, and may use their keys as values; in models with
// experts each layer adds their output to that of an MLP.
void read_gemma4(ConfigKeys& config, Model& model) {
  for (const char* key :
       {"num_kv_shared_layers", "hidden_size_per_layer_input", "use_double_wide_mlp"})
    config.refuse_if_set(key, "layers that share keys or have embeddings are not modelled");
  auto local = attention_of(model);
  local->window = config.size({"sliding_window"}, max_tokens, 512);
  auto global = attention_of(model);
  global->head_dim = global->value_dim = config.size({"global_head_dim"}, max_mixer_size, 512);
  global->values_are_keys = config.flag("attention_k_eq_v", false);
  const std::int64_t keys = config.count({"num_global_key_value_heads"}, max_heads, 0);
  if (global->values_are_keys && keys > 0) global->kv_heads = keys;
  std::vector<bool> is_global;
  if (const auto types = config.find({"layer_types"}))
    is_global = second_of(*types, model.layers, "sliding_attention", "full_attention");
  else
    for (int layer = 0; layer < model.layers; ++layer) is_global.push_back((layer + 1) % 6 == 0);
  PatternBuilder pattern;
  const int narrow = pattern.mixer("local", local);
  const int wide = pattern.mixer("global", global);
  FeedForward ffn = mlp_of(model);
  if (config.flag("enable_moe_block", false)) {
    read_family_experts(config, {}, model);
    ffn.experts = model.experts;
    ffn.extra_norms = 3;  // Behind the MLP, before and behind the experts.
  }
  const int part = pattern.ffn(ffn.experts ? "moe" : "mlp", ffn);
  for (int layer = 0; layer < model.layers; ++layer)
    pattern.layer(is_global[static_cast<std::size_t>(layer)] ? wide : narrow, part);
  pattern.finish(model);
}

void read_mimo_v2(ConfigKeys& config, Model& model) {
  auto global = attention_of(model);
  global->value_dim = config.size({"v_head_dim"}, max_mixer_size, model.head_dim);
  global->sinks = config.flag("add_full_attention_sink_bias", false);
  auto local = std::make_shared<Attention>(*global);
  local->window = config.size({"sliding_window"}, max_tokens, {});
  local->heads = config.size({"swa_num_attention_heads"}, max_heads, model.heads);
  local->kv_heads = config.size({"swa_num_key_value_heads"}, max_heads, model.kv_heads);
  local->head_dim = config.size({"swa_head_dim"}, max_mixer_size, model.head_dim);
  local->value_dim = config.size({"swa_v_head_dim"}, max_mixer_size, global->value_dim);
  local->sinks = config.flag("add_swa_attention_sink_bias", false);
  const std::vector<bool> is_local = ones_of(config.required("hybrid_layer_pattern"), model.layers);
  of_two_mixers(model, experts_of(model), is_local, {"global", global}, {"local", local});
}

}  // namespace orrery
