// Defaults are those of the configuration classes in huggingface/transformers, version 4.50
// (src/transformers/models/<model_type>/configuration_<model_type>.py): a published file omits
// values that equal its class's default. Sizes that every published file states have none here.
#include "sim/model/hugging_face_families.hpp"

#include <algorithm>

#include "sim/model/model.hpp"

namespace orrery {
namespace {

struct Absent {
  std::int64_t max_sequence;
  bool tied;
  std::optional<std::int64_t> layers{}, hidden{}, heads{}, kv_heads{}, ffn{}, vocab{};
};

// Positions of YaRN also scale queries and keys (transformers, modeling_rope_utils.py,
// _compute_yarn_parameters), unless their factors make the scale one.
bool scales_with_positions(const JsonValue& config) {
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const auto scaling = config.find(key);
    if (!scaling || !scaling->is_object()) continue;
    const auto is_yarn = [&](const char* kind) {
      const auto word = scaling->find(kind);
      return word && word->is_string() && word->text() == "yarn";
    };
    if (!is_yarn("rope_type") && !is_yarn("type")) continue;
    if (const auto factor = scaling->find("attention_factor")) return factor->number(0, 1e6) != 1.0;
    const auto scale = scaling->find("mscale"), of_all = scaling->find("mscale_all_dim");
    return !(scale && of_all && *scale == *of_all);
  }
  return false;
}

// Keys that Llama's class and its copies share: RMS norms, rotary, a gated MLP.
Model read_llama_like(ConfigKeys& config, const Absent& absent) {
  Model model;
  model.gated = true;
  model.layers = static_cast<int>(config.size({"num_hidden_layers"}, max_layers, absent.layers));
  model.hidden = config.size({"hidden_size"}, max_width, absent.hidden);
  model.heads = config.size({"num_attention_heads"}, max_heads, absent.heads);
  model.kv_heads =
      config.size({"num_key_value_heads"}, max_heads, absent.kv_heads.value_or(model.heads));
  model.ffn = config.size({"intermediate_size"}, max_width, absent.ffn);
  model.vocab = config.size({"vocab_size"}, max_tokens, absent.vocab);
  model.max_sequence = config.size({"max_position_embeddings"}, max_tokens, absent.max_sequence);
  model.tied_embeddings = config.flag("tie_word_embeddings", absent.tied);
  model.scaled_rotary = scales_with_positions(config.json());
  return model;
}

void divide_heads(ConfigKeys& config, Model& model) {
  const auto stated = config.find({"head_dim"});
  if (!stated && model.hidden % model.heads != 0)
    config.json().fail(std::to_string(model.heads) + " heads do not divide a hidden size of " +
                           std::to_string(model.hidden),
                       "state head_dim");
  model.head_dim = stated ? stated->integer(1, max_width) : model.hidden / model.heads;
}

void read_attention_bias(ConfigKeys& config, Model& model) {
  model.qkv_bias = model.out_bias = config.flag("attention_bias", false);
}

// Uses "layer_types" of newer files, or else `is_local`.
template <class Predicate>
void set_window(ConfigKeys& config, Model& model, std::int64_t window, Predicate is_local) {
  const auto types = config.find({"layer_types"});
  std::vector<bool> local;
  if (types) {
    const auto words = types->elements();
    if (words.size() != static_cast<std::size_t>(model.layers))
      types->fail("has " + std::to_string(words.size()) + " entries for " +
                      std::to_string(model.layers) + " layers",
                  "write one a layer");
    for (const JsonValue& word : words) {
      const std::string type = word.text();
      if (type != "full_attention" && type != "sliding_attention" && type != "chunked_attention")
        word.fail("'" + type + "' is not a layer type that is known",
                  "write full_attention, sliding_attention or chunked_attention");
      local.push_back(type != "full_attention");
    }
  } else {
    for (int layer = 0; layer < model.layers; ++layer) local.push_back(is_local(layer));
  }
  const auto first = std::find(local.begin(), local.end(), true);
  if (first == local.end()) return;
  if (window == 0) {
    if (types)
      types->elements()[static_cast<std::size_t>(first - local.begin())].fail(
          "is said of a layer, but no sliding_window is set",
          "set sliding_window (Qwen: with use_sliding_window), or write full_attention");
    return;
  }
  model.window = window;
  model.layer_is_local = std::move(local);
}

// Qwen counts its window only if a switch says so, and only from a certain layer on.
void read_qwen_window(ConfigKeys& config, Model& model) {
  const std::int64_t window = config.count({"sliding_window"}, max_tokens, 4096);
  const std::int64_t first = config.count({"max_window_layers"}, max_layers, 28);
  const bool used = config.flag("use_sliding_window", false);
  set_window(config, model, used ? window : 0, [&](int layer) { return layer >= first; });
}

void read_whole_window(ConfigKeys& config, Model& model) {
  const std::int64_t window = config.count({"sliding_window"}, max_tokens, 0);
  set_window(config, model, window, [](int) { return true; });
}

void finish_gemma(ConfigKeys& config, Model& model) {
  model.head_dim = config.size({"head_dim"}, max_width, 256);
  read_attention_bias(config, model);
  config.refuse_if_set("use_bidirectional_attention", "only causal attention is modelled");
}

std::int64_t count_experts(ConfigKeys& config, std::optional<std::int64_t> absent = std::nullopt) {
  return config.size({"num_experts", "num_local_experts", "n_routed_experts"}, max_experts, absent);
}

}  // namespace

Model read_llama(ConfigKeys& config) {
  Model model = read_llama_like(config, {2048, false});
  divide_heads(config, model);
  read_attention_bias(config, model);
  model.mlp_bias = config.flag("mlp_bias", false);
  return model;
}

Model read_mistral(ConfigKeys& config) {
  Model model = read_llama_like(config, {131'072, false});
  divide_heads(config, model);
  read_whole_window(config, model);
  return model;
}

Model read_qwen2(ConfigKeys& config) {
  Model model = read_llama_like(config, {32'768, false});
  divide_heads(config, model);
  model.qkv_bias = true;  // Fixed in the class.
  read_qwen_window(config, model);
  return model;
}

Model read_qwen3(ConfigKeys& config) {
  Model model = read_llama_like(config, {32'768, false});
  model.head_dim = config.size({"head_dim"}, max_width, 128);
  model.qk_norm = true;
  read_attention_bias(config, model);
  read_qwen_window(config, model);
  return model;
}

// Layers without positions count like the others.
Model read_smollm3(ConfigKeys& config) {
  Model model = read_llama_like(config, {32'768, true});
  divide_heads(config, model);
  read_attention_bias(config, model);
  model.mlp_bias = config.flag("mlp_bias", false);
  read_qwen_window(config, model);
  return model;
}

Model read_mixtral(ConfigKeys& config) {
  Model model = read_llama_like(config, {131'072, false});
  divide_heads(config, model);
  read_whole_window(config, model);
  model.experts = Experts{.count = count_experts(config, 8),
                          .per_token = config.size({"num_experts_per_tok"}, max_experts, 2),
                          .ffn = model.ffn};  // Mixtral's intermediate_size is one expert's.
  model.layer_has_experts.assign(static_cast<std::size_t>(model.layers), true);
  return model;
}

Model read_qwen3_moe(ConfigKeys& config) {
  Model model = read_llama_like(config, {32'768, false});
  divide_heads(config, model);
  model.qk_norm = true;
  read_attention_bias(config, model);
  read_qwen_window(config, model);
  model.experts = Experts{.count = count_experts(config),
                          .per_token = config.size({"num_experts_per_tok"}, max_experts),
                          .ffn = config.size({"moe_intermediate_size"}, max_width)};
  const std::int64_t step = config.size({"decoder_sparse_step"}, max_layers, 1);
  for (int layer = 0; layer < model.layers; ++layer)
    model.layer_has_experts.push_back((layer + 1) % step == 0);
  if (const auto dense = config.find({"mlp_only_layers"}))
    for (const JsonValue& layer : dense->elements())
      model.layer_has_experts[static_cast<std::size_t>(layer.integer(0, model.layers - 1))] = false;
  return model;
}

// Experts as DeepSeek's classes call them, with as many shared ones where the file does not say it,
// and layers that predict further tokens.
Experts& read_grouped_experts(ConfigKeys& config, std::int64_t usual_shared, Model& model) {
  model.prediction_layers =
      static_cast<int>(config.count({"num_nextn_predict_layers"}, max_layers, 0));
  Experts& experts = model.experts.emplace();
  experts.count = count_experts(config);
  experts.per_token = config.size({"num_experts_per_tok"}, max_experts);
  experts.ffn = config.size({"moe_intermediate_size"}, max_width);
  experts.shared_ffn = experts.ffn * config.count({"n_shared_experts"}, max_experts, usual_shared);
  experts.groups = config.size({"n_group"}, max_experts, 1);
  experts.groups_per_token = config.size({"topk_group"}, max_experts, 1);
  return experts;
}

Model read_deepseek(ConfigKeys& config) {
  Model model = read_llama_like(config, {4096, false});
  config.refuse_if_set("attention_bias", "biases of latent attention are not modelled");
  model.latent = LatentAttention{.q_rank = config.count({"q_lora_rank"}, max_width, 0),
                                 .kv_rank = config.size({"kv_lora_rank"}, max_width),
                                 .nope_dim = config.size({"qk_nope_head_dim"}, max_width),
                                 .rope_dim = config.size({"qk_rope_head_dim"}, max_width),
                                 .v_dim = config.size({"v_head_dim"}, max_width)};
  model.kv_heads = model.heads;
  model.head_dim = model.latent->nope_dim + model.latent->rope_dim;
  Experts& experts = read_grouped_experts(config, 0, model);
  // "noaux_tc" balances by a bias per expert; files without the key are DeepSeek-V3, whose class in
  // transformers has no other method.
  const auto method = config.find({"topk_method"});
  experts.correction_bias = !method || method->text() == "noaux_tc";
  const std::int64_t dense = config.count({"first_k_dense_replace"}, max_layers, 0);
  const std::int64_t every = config.size({"moe_layer_freq"}, max_layers, 1);
  for (int layer = 0; layer < model.layers; ++layer)
    model.layer_has_experts.push_back(layer >= dense && layer % every == 0);
  return model;
}

// Attention has biases on q, k and v only.
Model read_glm4_moe(ConfigKeys& config) {
  Model model = read_llama_like(config, {131'072, false});
  divide_heads(config, model);
  model.qkv_bias = config.flag("attention_bias", false);
  model.qk_norm = config.flag("use_qk_norm", false);
  read_grouped_experts(config, 1, model).correction_bias = true;  // Fixed in the class.
  const std::int64_t dense = config.count({"first_k_dense_replace"}, max_layers, 1);
  for (int layer = 0; layer < model.layers; ++layer)
    model.layer_has_experts.push_back(layer >= dense);
  return model;
}

// Layers with positions attend inside chunks, which count as windows: the same up to one chunk, and
// more work beyond. intermediate_size is that of an expert and of the shared one.
Model read_llama4(ConfigKeys& config) {
  Model model = read_llama_like(config, {131'072, false});
  model.head_dim = config.size({"head_dim"}, max_width, model.hidden / model.heads);
  read_attention_bias(config, model);
  model.experts = Experts{.count = count_experts(config, 16),
                          .per_token = config.size({"num_experts_per_tok"}, max_experts, 1),
                          .ffn = model.ffn,
                          .shared_ffn = model.ffn};
  model.ffn = config.size({"intermediate_size_mlp"}, max_width, 16'384);
  const std::int64_t step = config.size({"interleave_moe_layer_step"}, max_layers, 1);
  for (int layer = 0; layer < model.layers; ++layer)
    model.layer_has_experts.push_back((layer + 1) % step == 0);
  const std::int64_t chunk = config.count({"attention_chunk_size"}, max_tokens, 8192);
  const std::int64_t interval = config.size({"no_rope_layer_interval"}, max_layers, 4);
  std::vector<bool> has_positions;
  if (const auto listed = config.find({"no_rope_layers"}))
    for (const JsonValue& layer : listed->elements())
      has_positions.push_back(layer.integer(0, 1) == 1);
  set_window(config, model, chunk, [&](int layer) {
    const auto at = static_cast<std::size_t>(layer);
    return at < has_positions.size() ? has_positions[at] : (layer + 1) % interval != 0;
  });
  return model;
}

Model read_gpt_oss(ConfigKeys& config) {
  const Absent absent{131'072,       false,
                      /*layers=*/36, /*hidden=*/2880,
                      /*heads=*/64,  /*kv_heads=*/8,
                      /*ffn=*/2880,  /*vocab=*/201'088};
  Model model = read_llama_like(config, absent);
  model.head_dim = config.size({"head_dim"}, max_width, 64);
  model.qkv_bias = model.out_bias = config.flag("attention_bias", true);
  model.mlp_bias = model.attention_sinks = model.clamped_activation = true;
  const std::int64_t window = config.count({"sliding_window"}, max_tokens, 128);
  set_window(config, model, window, [](int layer) { return layer % 2 == 0; });
  model.experts = Experts{
      .count = count_experts(config, 128),
      .per_token = config.size({"num_experts_per_tok", "experts_per_token"}, max_experts, 4),
      .ffn = model.ffn};  // GPT-OSS's intermediate_size is one expert's.
  model.layer_has_experts.assign(static_cast<std::size_t>(model.layers), true);
  return model;
}

Model read_phi3(ConfigKeys& config) {
  Model model = read_llama_like(config, {4096, false});
  divide_heads(config, model);
  read_attention_bias(config, model);
  read_whole_window(config, model);
  return model;
}

Model read_gpt2(ConfigKeys& config) {
  Model model;
  model.layers = static_cast<int>(config.size({"n_layer"}, max_layers));
  model.hidden = config.size({"n_embd"}, max_width);
  model.heads = model.kv_heads = config.size({"n_head"}, max_heads);
  divide_heads(config, model);
  model.ffn = config.size({"n_inner"}, max_width, 4 * model.hidden);
  model.vocab = config.size({"vocab_size"}, max_tokens);
  model.max_sequence = model.learned_positions = config.size({"n_positions"}, max_tokens, 1024);
  model.rotary = false;
  model.tied_embeddings = config.flag("tie_word_embeddings", true);
  model.norm = NormKind::layer;
  model.norm_bias = model.qkv_bias = model.out_bias = model.mlp_bias = true;
  return model;
}

// The table of positions has two rows that no token reads (OPTLearnedPositionalEmbedding).
Model read_opt(ConfigKeys& config) {
  Model model = read_llama_like(config, {2048, true, 12, 768, 12, std::nullopt, 3072, 50'272});
  divide_heads(config, model);
  model.ffn = config.size({"ffn_dim"}, max_width, 3072);
  model.gated = model.rotary = false;
  model.learned_positions = model.max_sequence + 2;
  model.norm = NormKind::layer;
  model.norm_bias = config.flag("layer_norm_elementwise_affine", true);
  model.qkv_bias = model.out_bias = model.mlp_bias = config.flag("enable_bias", true);
  if (const auto width = config.find({"word_embed_proj_dim"});
      width && width->integer(1, max_width) != model.hidden)
    width->fail("means tables narrower than the layers, which nothing prices",
                "take a model whose embeddings are as wide as its layers");
  if (!config.flag("do_layer_norm_before", true))
    config.json()
        .at("do_layer_norm_before")
        .fail("means norms behind the layers, which nothing prices", "take another model");
  return model;
}

Model read_gpt_neox(ConfigKeys& config) {
  Model model = read_llama_like(config, {2048, false});
  divide_heads(config, model);
  model.gated = false;
  model.norm = NormKind::layer;
  model.norm_bias = model.mlp_bias = true;
  model.qkv_bias = model.out_bias = config.flag("attention_bias", true);
  model.parallel_residual = config.flag("use_parallel_residual", true);
  return model;
}

// Both blocks share one norm, and no attention layer has a bias. The head's bias, one a token of
// the vocabulary, is not counted.
Model read_gptj(ConfigKeys& config) {
  Model model = read_gpt2(config);
  model.learned_positions = 0;
  model.rotary = true;
  model.tied_embeddings = config.flag("tie_word_embeddings", false);
  model.qkv_bias = model.out_bias = false;
  model.parallel_residual = true;
  model.norms_per_layer = 1;
  return model;
}

// Falcon 7B has one key/value head and one norm for both blocks; 40B and 180B have the "new decoder
// architecture", with groups of heads and a norm each.
Model read_falcon(ConfigKeys& config) {
  Model model;
  model.layers = static_cast<int>(config.size({"num_hidden_layers", "n_layer"}, max_layers, 32));
  model.hidden = config.size({"hidden_size", "n_embed"}, max_width, 4544);
  model.heads = config.size({"num_attention_heads", "n_head"}, max_heads, 71);
  divide_heads(config, model);
  const bool grouped = config.flag("new_decoder_architecture", false);
  const bool one_key = config.flag("multi_query", true);
  const auto keys = config.find({"num_kv_heads", "n_head_kv"});
  model.kv_heads = grouped && keys       ? keys->integer(1, max_heads)
                   : !grouped && one_key ? 1
                                         : model.heads;
  model.ffn = config.size({"ffn_hidden_size"}, max_width, 4 * model.hidden);
  model.vocab = config.size({"vocab_size"}, max_tokens, 65'024);
  model.max_sequence = config.size({"max_position_embeddings"}, max_tokens, 2048);
  model.rotary = !config.flag("alibi", false);
  model.tied_embeddings = config.flag("tie_word_embeddings", true);
  model.norm = NormKind::layer;
  model.norm_bias = true;
  model.qkv_bias = model.out_bias = model.mlp_bias = config.flag("bias", false);
  model.parallel_residual = config.flag("parallel_attn", true) || grouped;
  const std::int64_t norms = config.count({"num_ln_in_parallel_attn"}, 2, grouped ? 2 : 1);
  model.norms_per_layer = model.parallel_residual && norms < 2 ? 1 : 2;
  return model;
}

Model read_cohere(ConfigKeys& config) {
  Model model = read_llama_like(config, {8192, true});
  divide_heads(config, model);
  read_attention_bias(config, model);
  config.refuse_if_set("use_qk_norm", "norms of each head's own are not modelled");
  model.norm = NormKind::layer;  // Has scales only.
  model.parallel_residual = true;
  model.norms_per_layer = 1;
  return model;
}

// Three layers of four see a window (transformers, Cohere2Config).
Model read_cohere2(ConfigKeys& config) {
  Model model = read_cohere(config);
  const std::int64_t window = config.count({"sliding_window"}, max_tokens, 4096);
  const std::int64_t pattern =
      config.size({"sliding_window_pattern", "_sliding_window_pattern"}, max_layers, 4);
  set_window(config, model, window, [&](int layer) { return (layer + 1) % pattern != 0; });
  return model;
}

Model read_gemma(ConfigKeys& config) {
  Model model = read_llama_like(config, {8192, true});
  finish_gemma(config, model);
  return model;
}

Model read_gemma2(ConfigKeys& config) {
  Model model = read_gemma(config);
  model.norms_per_layer = 4;  // Norms precede and follow both attention and MLP.
  const std::int64_t window = config.count({"sliding_window"}, max_tokens, 4096);
  set_window(config, model, window, [](int layer) { return layer % 2 == 0; });
  return model;
}

Model read_gemma3(ConfigKeys& config) {
  // Published files omit the class's defaults, sizes included.
  const Absent absent{131'072,       true,
                      /*layers=*/26, /*hidden=*/2304,
                      /*heads=*/8,   /*kv_heads=*/4,
                      /*ffn=*/9216,  /*vocab=*/262'208};
  Model model = read_llama_like(config, absent);
  finish_gemma(config, model);
  model.qk_norm = true;
  model.norms_per_layer = 4;
  const std::int64_t window = config.count({"sliding_window"}, max_tokens, 4096);
  const std::int64_t pattern =
      config.size({"sliding_window_pattern", "_sliding_window_pattern"}, max_layers, 6);
  set_window(config, model, window, [&](int layer) { return (layer + 1) % pattern != 0; });
  return model;
}

}  // namespace orrery
