#include "sim/model/hugging_face.hpp"

#include <algorithm>

#include "sim/core/nearest.hpp"
#include "sim/core/value_list.hpp"
#include "sim/model/hugging_face_families.hpp"

namespace orrery {

std::optional<JsonValue> ConfigKeys::find(const std::vector<std::string>& spellings) {
  requested_.insert(requested_.end(), spellings.begin(), spellings.end());
  std::optional<JsonValue> found;
  for (const std::string& key : spellings) {
    const auto value = json_.find(key);
    if (!value) continue;
    if (found && !(*found == *value))
      value->fail("differs from " + found->place().pointer + ", another spelling of it",
                  "keep one of them");
    if (!found) found = value;
  }
  return found;
}

std::int64_t ConfigKeys::size(const std::vector<std::string>& spellings, std::int64_t maximum,
                              std::optional<std::int64_t> absent) {
  if (const auto value = find(spellings)) return value->integer(1, maximum);
  return absent ? *absent : json_.at(spellings.front()).integer(1, maximum);
}

std::int64_t ConfigKeys::count(const std::vector<std::string>& spellings, std::int64_t maximum,
                               std::int64_t absent) {
  const auto value = find(spellings);
  return value ? value->integer(0, maximum) : absent;
}

bool ConfigKeys::flag(const std::string& key, bool absent) {
  const auto value = find({key});
  return value ? value->boolean() : absent;
}

void ConfigKeys::refuse_if_set(const std::string& key, const std::string& why) {
  const auto value = find({key});
  if (!value) return;
  const bool empty = (value->is_number() && value->number(-1e300, 1e300) == 0.0) ||
                     (value->is_array() && value->elements().empty()) ||
                     (value->is_object() && value->keys().empty()) ||
                     (value->is_boolean() && !value->boolean());
  if (!empty) value->fail(why, "remove the key, or describe the model in our own format");
}

void ConfigKeys::refuse_unknown(const std::vector<std::string>& harmless) const {
  std::vector<std::string> known = requested_;
  known.insert(known.end(), harmless.begin(), harmless.end());
  known.insert(known.end(), harmless_config_keys().begin(), harmless_config_keys().end());
  for (const std::string& key : json_.keys())
    if (json_.has(key) && !key.starts_with('_') &&
        std::find(known.begin(), known.end(), key) == known.end()) {
      const std::string near = nearest(key, requested_);
      json_.fail("the key '" + shown_text(key) + "' is unknown and may change the model's shape",
                 near.empty() ? "remove it if it does not" : "did you mean '" + near + "'?");
    }
}

const std::vector<std::string>& harmless_config_keys() {
  static const std::vector<std::string> keys{
      // Keys of every transformers configuration (v4 and v5, PretrainedConfig).
      "architectures", "auto_map", "begin_suppress_tokens", "bad_words_ids", "bos_token_id",
      "chunk_size_feed_forward", "decoder_start_token_id", "diversity_penalty", "do_sample",
      "dtype", "early_stopping", "encoder_no_repeat_ngram_size", "eos_token_id",
      "exponential_decay_length_penalty", "finetuning_task", "forced_bos_token_id",
      "forced_eos_token_id", "id2label", "is_decoder", "label2id", "length_penalty", "max_length",
      "min_length", "model_type", "no_repeat_ngram_size", "num_beam_groups", "num_beams",
      "num_labels", "num_return_sequences", "output_attentions", "output_hidden_states",
      "output_scores", "pad_token_id", "prefix", "problem_type", "remove_invalid_values",
      "repetition_penalty", "return_dict", "return_dict_in_generate", "sep_token_id",
      "suppress_tokens", "task_specific_params", "temperature", "tf_legacy_loss",
      "tie_encoder_decoder", "tokenizer_class", "top_k", "top_p", "torch_dtype", "torchscript",
      "transformers_version", "use_mrope", "typical_p", "unsloth_fixed", "unsloth_version",
      "use_bfloat16", "use_cache", "cache_implementation", "attn_implementation", "bos_token",
      "eos_token", "custom_pipelines", "base_model_tp_plan", "base_model_pp_plan",
      "model_max_length",
      // Key that this project adds.
      "name",
      // Numerics of a layer.
      "attention_dropout", "hidden_dropout", "classifier_dropout", "hidden_act",
      "hidden_activation", "initializer_range", "layer_norm_eps", "rms_norm_eps", "pretraining_tp",
      "quantization_config", "compression_config", "rope_scaling", "rope_theta", "rope_parameters",
      "rope_local_base_freq", "rope_interleave", "partial_rotary_factor",
      "original_max_position_embeddings", "loss_type"};
  return keys;
}

namespace {

struct Family {
  std::string type;          // "model_type"
  std::string architecture;  // Beginning of the entry of "architectures".
  Model (*read)(ConfigKeys&);
  std::vector<std::string> harmless;  // Added to harmless_config_keys().
};

const std::vector<Family>& families() {
  static const std::vector<std::string> moe{"norm_topk_prob", "output_router_logits",
                                            "router_aux_loss_coef", "router_jitter_noise"};
  static const std::vector<std::string> deepseek{"aux_loss_alpha",       "ep_size",
                                                 "norm_topk_prob",       "routed_scaling_factor",
                                                 "scoring_func",         "seq_aux",
                                                 "qk_head_dim",          "head_dim",
                                                 "output_router_logits", "router_aux_loss_coef"};
  static const std::vector<std::string> llama4{
      "attn_scale",  "attn_temperature_tuning", "floor_scale",          "for_llm_compressor",
      "moe_layers",  "output_router_logits",    "router_aux_loss_coef", "router_jitter_noise",
      "use_qk_norm", "cache_implementation"};
  static const std::vector<std::string> gemma{"attn_logit_softcapping", "final_logit_softcapping",
                                              "query_pre_attn_scalar", "sliding_window_size",
                                              "hidden_act"};
  static const std::vector<std::string> gpt2{"activation_function",
                                             "attn_pdrop",
                                             "embd_pdrop",
                                             "layer_norm_epsilon",
                                             "n_special",
                                             "predict_special_tokens",
                                             "output_past",
                                             "n_ctx",
                                             "resid_pdrop",
                                             "reorder_and_upcast_attn",
                                             "scale_attn_weights",
                                             "scale_attn_by_inverse_layer_idx",
                                             "summary_activation",
                                             "summary_first_dropout",
                                             "summary_proj_to_labels",
                                             "summary_type",
                                             "summary_use_proj"};
  // Multimodal models without a text_config have the keys of images next to those of the text.
  static const std::vector<std::string> image_keys{"image_token_id",  "video_token_id",
                                                   "vision_config",   "vision_start_token_id",
                                                   "vision_token_id", "vision_end_token_id"};
  static const std::vector<std::string> gptj = [] {
    std::vector<std::string> keys = gpt2;
    for (const char* key : {"rotary", "rotary_dim", "gradient_checkpointing"}) keys.push_back(key);
    return keys;
  }();
  static const std::vector<Family> all{
      {"llama", "Llama", read_llama, {}},
      {"mistral", "Mistral", read_mistral, {}},
      {"qwen2", "Qwen2For", read_qwen2, {}},
      {"qwen2_5_vl", "Qwen2_5_VLFor", read_qwen2, image_keys},
      {"qwen2_5_vl_text", "Qwen2_5_VLText", read_qwen2, {}},
      {"qwen3", "Qwen3For", read_qwen3, {}},
      {"qwen3_vl", "Qwen3VLFor", read_qwen3, {}},
      {"qwen3_vl_text", "Qwen3VLText", read_qwen3, {}},
      {"qwen3_vl_moe", "Qwen3VLMoeFor", read_qwen3_moe, moe},
      {"qwen3_vl_moe_text", "Qwen3VLMoeText", read_qwen3_moe, moe},
      {"smollm3", "SmolLM3", read_smollm3, {"no_rope_layers", "no_rope_layer_interval"}},
      {"opt",
       "OPT",
       read_opt,
       {"activation_dropout", "activation_function", "dropout", "init_std", "layerdrop",
        "_remove_final_layer_norm"}},
      {"phi3", "Phi3", read_phi3, {"embd_pdrop", "resid_pdrop"}},
      {"mixtral", "Mixtral", read_mixtral, moe},
      {"qwen3_moe", "Qwen3Moe", read_qwen3_moe, moe},
      {"glm4_moe",
       "Glm4Moe",
       read_glm4_moe,
       {"norm_topk_prob", "routed_scaling_factor", "partial_rotary_factor", "output_router_logits",
        "router_aux_loss_coef"}},
      {"llama4_text", "Llama4ForCausal", read_llama4, llama4},
      {"llama4", "Llama4ForConditional", read_llama4, llama4},
      {"gpt_oss",
       "GptOss",
       read_gpt_oss,
       {"initial_context_length", "output_router_logits", "router_aux_loss_coef", "swiglu_limit"}},
      {"deepseek_v2", "DeepseekV2", read_deepseek, deepseek},
      {"deepseek_v3", "DeepseekV3", read_deepseek, deepseek},
      {"kimi_k2", "KimiK2", read_deepseek, deepseek},
      {"gpt2", "GPT2", read_gpt2, gpt2},
      {"gptj", "GPTJ", read_gptj, gptj},
      {"falcon",
       "Falcon",
       read_falcon,
       {"activation", "apply_residual_connection_post_layernorm", "layer_norm_epsilon"}},
      {"cohere", "CohereFor", read_cohere, {"logit_scale"}},
      {"cohere2",
       "Cohere2",
       read_cohere2,
       {"logit_scale", "layer_switch", "order_of_interleaved_layers", "position_embedding_type",
        "rotary_pct", "use_embedding_sharing", "use_gated_activation", "use_parallel_block",
        "use_parallel_embedding", "rope_scaling"}},
      {"gpt_neox",
       "GPTNeoX",
       read_gpt_neox,
       {"attention_probs_dropout_prob", "hidden_dropout_prob", "rotary_emb_base", "rotary_pct"}},
      {"gemma", "GemmaFor", read_gemma, gemma},
      {"gemma2", "Gemma2For", read_gemma2, gemma},
      {"gemma3", "Gemma3ForConditional", read_gemma3, gemma},
      {"gemma3_text", "Gemma3ForCausal", read_gemma3, gemma}};
  return all;
}

// Unsupported kinds of layers, by the beginning of their models' types.
const WordPairs unpriced_types = words_by_meaning({
    {"Mamba layers",
     "bamba codegen_mamba falcon_h1 falcon_mamba granitemoehybrid jamba mamba nemotron_h zamba"},
    {"an encoder", "bert roberta"},
    {"sparse attention with an indexer", "deepseek_v32"},
    {"linear attention", "kimi_linear minimax"},
    {"convolutions", "lfm2"},
    {"linear attention (gated delta nets)", "qwen3_5 qwen3_next"},
    {"recurrent layers", "recurrent_gemma rwkv"},
    {"an encoder and a decoder", "t5 whisper"},
});

// The family of the model_type, else of the class name in "architectures".
const Family& family_of(const JsonValue& json) {
  if (const auto type = json.find("model_type")) {
    const std::string word = type->text();
    for (const Family& family : families())
      if (family.type == word) return family;
    for (const auto& [begin, layers] : unpriced_types)
      if (word.starts_with(begin))
        type->fail(
            "the model_type '" + shown_text(word) + "' has " + layers + ", which nothing prices",
            "take a model of attention and MLPs or experts");
    const std::string near = nearest(word, hugging_face_types());
    type->fail("the model_type '" + shown_text(word) + "' is unknown",
               (near.empty() ? "" : "did you mean '" + near + "'? ") + "known are " +
                   joined(hugging_face_types()));
  }
  if (const auto classes = json.find("architectures"); classes && !classes->elements().empty()) {
    const JsonValue first = classes->elements().front();
    const std::string name = first.text();
    for (const Family& family : families())
      if (name.starts_with(family.architecture)) return family;
    first.fail("the architecture '" + shown_text(name) + "' is unknown", "state the model_type");
  }
  json.fail("the key 'model_type' is missing", "add it, such as \"llama\"");
}

// Gemma 3, Qwen3-VL and similar wrap the language model; the rest of the file describes images.
const std::vector<std::string>& wrapper_keys() {
  static const std::vector<std::string> keys{
      "boi_token_id",         "boi_token_index",       "eoi_token_id",
      "eoi_token_index",      "image_token_id",        "image_token_index",
      "mm_tokens_per_image",  "text_config",           "vision_config",
      "vision_feature_layer", "projector_hidden_act",  "multi_modal_projector_bias",
      "video_token_id",       "vision_start_token_id", "vision_end_token_id"};
  return keys;
}

Model read_with(const Family& family, ConfigKeys& config) {
  for (const char* key :
       {"is_encoder_decoder", "add_cross_attention", "cross_attention_hidden_size"})
    config.refuse_if_set(key, "only decoder-only models are read");
  config.refuse_if_set("pruned_heads", "pruned heads are not read");
  Model model = family.read(config);
  config.refuse_unknown(family.harmless);
  return model;
}

}  // namespace

bool is_hugging_face(const JsonValue& json) {
  if (json.has("schema")) return false;
  for (const char* key :
       {"model_type", "architectures", "text_config", "num_hidden_layers", "hidden_size", "n_embd"})
    if (json.has(key)) return true;
  return false;
}

Model parse_hugging_face(const JsonValue& json) {
  const Family& family = family_of(json);
  const auto text = json.find("text_config");
  if (text && !json.has("hidden_size")) {
    ConfigKeys wrapper{json};
    const auto tied = wrapper.find({"tie_word_embeddings"});
    wrapper.refuse_unknown(wrapper_keys());
    ConfigKeys config{*text};
    Model model = read_with(family, config);
    if (tied && !text->has("tie_word_embeddings")) model.tied_embeddings = tied->boolean();
    return model;
  }
  ConfigKeys config{json};
  return read_with(family, config);
}

const std::vector<std::string>& hugging_face_types() {
  static const std::vector<std::string> types = [] {
    std::vector<std::string> names;
    for (const Family& family : families()) names.push_back(family.type);
    return names;
  }();
  return types;
}

}  // namespace orrery
