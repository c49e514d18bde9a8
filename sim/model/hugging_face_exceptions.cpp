// What a class of transformers does otherwise than the table of families can say.
#include <algorithm>

#include "sim/core/value_list.hpp"
#include "sim/model/hugging_face_families.hpp"
#include "sim/model/hugging_face_patterns.hpp"

namespace orrery {

void refuse_sharing(ConfigKeys& config, Model&) {
  config.refuse_if_set("use_cla", "layers that share keys and values are not modelled");
  config.refuse_if_set("use_mla", "this model's latent attention is not modelled");
}

// The table of positions has two rows that no token reads (OPTLearnedPositionalEmbedding).
void read_opt(ConfigKeys& config, Model& model) {
  model.learned_positions = model.max_sequence + 2;
  if (const auto width = config.find({"word_embed_proj_dim"});
      width && width->integer(1, max_width) != model.hidden)
    width->fail("means tables narrower than the layers, which nothing prices",
                "take a model whose embeddings are as wide as its layers");
  if (!config.flag("do_layer_norm_before", true))
    config.json()
        .at("do_layer_norm_before")
        .fail("means norms behind the layers, which nothing prices", "take another model");
}

// Falcon 7B has one key/value head and one norm for both blocks; 40B and 180B have the "new decoder
// architecture", with groups of heads and a norm each.
void read_falcon(ConfigKeys& config, Model& model) {
  const bool grouped = config.flag("new_decoder_architecture", false);
  const bool one_key = config.flag("multi_query", true);
  const auto keys = config.find({"num_kv_heads", "n_head_kv"});
  model.kv_heads = grouped && keys       ? keys->integer(1, max_heads)
                   : !grouped && one_key ? 1
                                         : model.heads;
  model.rotary = !config.flag("alibi", false);
  model.parallel_residual = config.flag("parallel_attn", true) || grouped;
  const auto norms = config.find({"num_ln_in_parallel_attn"});
  const bool has_one = norms ? norms->integer(0, 2) < 2 : !grouped;
  model.norms_per_layer = model.parallel_residual && has_one ? 1 : 2;
}

// MPT's class in transformers has one value of each of these; its norms have no biases.
void read_mpt(ConfigKeys& config, Model& model) {
  for (const auto& [key, only] : WordPairs{{"expansion_ratio", "4"},
                                           {"no_bias", "true"},
                                           {"attn_config/attn_type", "\"multihead_attention\""},
                                           {"attn_config/alibi", "true"},
                                           {"attn_config/qk_ln", "false"},
                                           {"attn_config/prefix_lm", "false"}})
    if (const auto value = config.find({key}); value && value->compact() != only)
      value->fail("is not " + only + ", which MPT's class in transformers always has",
                  "take another model");
  model.kv_heads = model.heads;
}

// DeepSeek-VL2's smallest model has heads of its own.
void require_latent(ConfigKeys& config, Model&) {
  if (!config.flag("use_mla", true))
    config.json().at("use_mla").fail("is false, which this type's reader does not know",
                                     "describe the model in our own format");
}

void refuse_bias(ConfigKeys& config, Model&) {
  config.refuse_if_set("use_bias", "biases of MLPs without those of experts are not modelled");
}

void read_one_key_head(ConfigKeys& config, Model& model) {
  model.kv_heads = config.flag("multi_query", true) ? 1 : model.heads;
}

// Global and local layers in turn, or as often as the lists say: [[["global", "local"], 12]].
void read_gpt_neo(ConfigKeys& config, Model& model) {
  std::vector<bool> local;
  if (const auto groups = config.find({"attention_types"}))
    for (const JsonValue& group : groups->elements()) {
      const auto parts = group.elements();
      if (parts.size() != 2)
        group.fail("is not a list of words and how often it repeats", "write [[\"global\"], 24]");
      for (std::int64_t i = parts[1].integer(1, max_layers); i > 0; --i)
        for (const JsonValue& word : parts[0].elements())
          if (local.size() < static_cast<std::size_t>(max_layers))
            local.push_back(word.text() == "local");
    }
  config.find({"attention_layers"});
  for (int layer = static_cast<int>(local.size()); layer < model.layers; ++layer)
    local.push_back(layer % 2 == 1);
  local.resize(static_cast<std::size_t>(model.layers));
  set_layer_windows(config, model, config.count({"window_size"}, max_tokens, 256), local);
}

// Layers with positions attend inside chunks, which count as windows: the same up to one chunk, and
// more work beyond. intermediate_size is that of an expert and of the shared one.
void read_llama4(ConfigKeys& config, Model& model) {
  model.experts->shared_ffn = model.experts->ffn;
  model.ffn = config.size({"intermediate_size_mlp"}, max_width, 16'384);
  const std::int64_t chunk = config.count({"attention_chunk_size"}, max_tokens, 8192);
  const std::int64_t interval = config.size({"no_rope_layer_interval"}, max_layers, 4);
  std::vector<bool> local;
  if (const auto listed = config.find({"no_rope_layers"}))
    for (const JsonValue& layer : listed->elements()) local.push_back(layer.integer(0, 1) == 1);
  for (int layer = static_cast<int>(local.size()); layer < model.layers; ++layer)
    local.push_back((layer + 1) % interval != 0);
  local.resize(static_cast<std::size_t>(model.layers));
  set_layer_windows(config, model, chunk, local);
}

// The first Qwen writes the width of both inner matrices together.
void read_qwen(ConfigKeys&, Model& model) { model.ffn = std::max<std::int64_t>(1, model.ffn / 2); }

// ChatGLM2, 3 and GLM-4 as first published: one group of key/value heads for several heads.
void read_chatglm(ConfigKeys& config, Model& model) {
  model.kv_heads = config.flag("multi_query_attention", false)
                       ? config.size({"multi_query_group_num"}, max_heads, 1)
                       : model.heads;
  model.vocab = config.size({"padded_vocab_size"}, max_tokens, model.vocab);
  if (!config.flag("rmsnorm", true)) {
    model.norm = NormKind::layer;
    model.norm_bias = true;
  }
  config.refuse_if_set("prefix_projection", "trained prefixes are not modelled");
  config.refuse_if_set("pre_seq_len", "trained prefixes are not modelled");
}

// Without queries' and keys' rotation a Baichuan has ALiBi: 13B, whose file has no
// max_position_embeddings.
void read_baichuan(ConfigKeys& config, Model& model) {
  if (config.json().has("max_position_embeddings")) return;
  model.rotary = false;
  model.max_sequence = config.size({"model_max_length"}, max_tokens, model.max_sequence);
}

// One norm where both blocks read the same input.
void read_stablelm(ConfigKeys&, Model& model) {
  if (model.parallel_residual) model.norms_per_layer = 1;
  model.wide_qk_norm = model.qk_norm;
}

void read_wide_norms(ConfigKeys&, Model& model) { model.wide_qk_norm = model.qk_norm; }

// MiniMax's first text model had linear attention in the layers of another type than 1.
void read_minimax_m2(ConfigKeys& config, Model& model) {
  if (const auto types = config.find({"attn_type_list"}))
    for (const JsonValue& type : types->elements())
      if (type.integer(0, 100) != 1)
        type.fail("is a layer of linear attention, which nothing prices",
                  "take a model of attention and MLPs or experts");
  const auto norms = config.find({"qk_norm_type"});
  model.wide_qk_norm = model.qk_norm && !(norms && norms->text() == "per_head");
}

void read_hunyuan_moe(ConfigKeys& config, Model& model) {
  refuse_sharing(config, model);
  if (!config.flag("use_mixed_mlp_moe", true)) model.experts->shared_ffn = 0;
  config.refuse_if_set("moe_layer_num_skipped", "layers that differ are not modelled");
  if (model.experts->count > 1) return;  // One expert is the MLP of a dense model.
  model.experts.reset();
  model.layer_has_experts.clear();
}

}  // namespace orrery
