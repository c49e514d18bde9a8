#include "sim/model/hugging_face.hpp"

#include <algorithm>
#include <cctype>

#include "sim/core/nearest.hpp"
#include "sim/core/value_list.hpp"
#include "sim/model/hugging_face_families.hpp"

namespace orrery {

std::optional<JsonValue> ConfigKeys::find(const std::vector<std::string>& spellings) {
  requested_.insert(requested_.end(), spellings.begin(), spellings.end());
  std::optional<JsonValue> found;
  for (const std::string& key : spellings) {
    const std::size_t slash = key.find('/');
    auto value = json_.find(key.substr(0, slash));
    if (value && slash != key.npos)
      value = value->is_object() ? value->find(key.substr(slash + 1)) : std::nullopt;
    if (!value) continue;
    if (found && !(*found == *value))
      value->fail("differs from " + found->place().pointer + ", another spelling of it",
                  "keep one of them");
    if (!found) found = value;
  }
  return found;
}

JsonValue ConfigKeys::required(const std::string& key) {
  const auto value = find({key});
  return value ? *value : json_.at(key);
}

std::int64_t ConfigKeys::size(const std::vector<std::string>& spellings, std::int64_t maximum,
                              std::optional<std::int64_t> absent) {
  if (const auto value = find(spellings)) return value->integer(1, maximum);
  return absent ? *absent : json_.at(spellings.front()).integer(1, maximum);
}

std::int64_t ConfigKeys::count(const std::vector<std::string>& spellings, std::int64_t maximum,
                               std::int64_t absent) {
  if (const auto value = find(spellings)) return value->integer(0, maximum);
  const auto written_null = [&](const std::string& key) { return is_null(key); };
  return std::any_of(spellings.begin(), spellings.end(), written_null) ? 0 : absent;
}

bool ConfigKeys::is_null(const std::string& key) const {
  const std::vector<std::string> keys = json_.keys();
  return !json_.has(key) && std::find(keys.begin(), keys.end(), key) != keys.end();
}

bool ConfigKeys::flag(const std::string& key, bool absent) {
  const auto value = find({key});
  return value ? value->boolean() : absent;
}

namespace {

// Switches that are off, and what has nothing in it. False, 0 and null change no shape.
bool is_off(const JsonValue& value) {
  return (value.is_number() && value.number(-1e300, 1e300) == 0.0) ||
         (value.is_array() && value.elements().empty()) ||
         (value.is_object() && value.keys().empty()) || (value.is_boolean() && !value.boolean()) ||
         (value.is_string() && value.text().empty());
}

// Keys that change no shape in any family: of every configuration of transformers (version 4 and 5,
// PretrainedConfig), of numerics, training, and of the images and sounds next to a text.
const std::vector<std::string> harmless_keys = words_in(R"(
  architectures auto_map base_model_pp_plan base_model_tp_plan begin_suppress_tokens bad_words_ids
  bos_token cache_implementation chunk_size_feed_forward custom_pipelines diversity_penalty
  do_sample dtype early_stopping init_method encoder_no_repeat_ngram_size eos_token
  exponential_decay_length_penalty finetuning_task id2label is_decoder is_llama_config label2id
  length_penalty max_length min_length model_max_length model_type name no_repeat_ngram_size
  num_beam_groups num_beams num_labels num_return_sequences output_attentions output_hidden_states
  output_past output_router_logits output_scores pos_emb predict_special_tokens prefix
  problem_type remove_invalid_values repetition_penalty return_dict return_dict_in_generate
  suppress_tokens task_specific_params temperature tf_legacy_loss tie_encoder_decoder top_k top_p
  torch_dtype torchscript typical_p unsloth_fixed use_bfloat16 use_cache use_mrope

  activation activation_function alibi_bias_max apply_query_key_layer_scaling
  apply_residual_connection_post_layernorm attention_softmax_in_fp32 attn_logit_softcapping
  attn_scale attn_temperature_tuning attn_uses_sequence_id aux_loss_alpha bf16 bias_dropout_fusion
  cla_share_factor clip_qkv classifier_dropout compression_config dim_model_base dropout
  embedding_fraction embedding_multiplier attention_multiplier residual_multiplier logits_scaling
  ep_size ffn_act_fn final_logit_softcapping floor_scale for_llm_compressor fp16 fp32
  fp32_residual_connection gradient_checkpointing hidden_act hidden_activation hidden_dropout
  hidden_dropout_prob attention_probs_dropout_prob inference_mode init_device initializer_factor
  initializer_range input_jitter_noise layer_norm_epsilon layer_switch layerdrop logit_scale
  loss_type make_vocab_size_divisible_by masked_softmax_fusion mlp_hidden_act moe_jitter_eps
  moe_loss_weight moe_normalize_expert_weights mup_denominator n_ctx n_special norm_eps norm_min
  norm_type norm_topk_prob offset_alibi order_of_interleaved_layers
  original_max_position_embeddings original_rope partial_rotary_factor position_embedding_type
  pretraining_tp quantization_config hf_quant_config query_pre_attn_scalar
  reorder_and_upcast_attn rescale_every residual_in_fp32 rope_interleave rope_local_base_freq
  rope_parameters rope_ratio rope_scaling
  rope_theta rotary rotary_base rotary_dim rotary_emb_base rotary_pct routed_scaling_factor
  router_aux_loss_coef router_jitter_noise router_z_loss_coef scale_attention_softmax_in_fp32
  scale_attn_by_inverse_layer_idx scale_attn_weights scale_attn scale_depth scale_emb scoring_func
  seq_aux skip_bias_add skip_bias_add_qkv slow_but_exact sliding_window_size softmax_scale
  summary_activation summary_first_dropout summary_proj_to_labels summary_type summary_use_proj
  swiglu_limit initial_context_length lm_head_bias type_vocab_size unk_token_id use_dynamic_ntk
  use_flash_attention use_flash_attn use_logn_attn verbose vocab_parallel_embedding
  moe_router_dtype moe_norm_min moe_drop_tokens moe_random_routing_dropped_token moe_group
  selective_checkpoint_enabled sequence_parallel_enabled move_model_to_device attn_mode
  interleaved_kv_cache post_layer_norm layernorm_epsilon params_dtype image_size image_token_id
  projector_hidden_act multi_modal_projector_bias img_processor embd_layer num_img_tokens
  init_config learned_pos_emb use_mm_proj validate_runner_input pad_key_length inference_runner
  pre_allocate_kv_cache)");

// The same by their ends or beginnings.
bool is_harmless_by_kind(const std::string& key) {
  for (const char* end :
       {"_token_id", "_token_ids", "_token_index", "_dropout", "_pdrop", "_eps", "_std", "_coef",
        "_attn_implementation", "attn_implementation", "attn_impl", "_version"})
    if (key.ends_with(end)) return true;
  for (const char* begin :
       {"_", "vision_", "video_", "audio_", "image_", "mm_", "tokenizer", "vit_"})
    if (key.starts_with(begin)) return true;
  return false;
}

}  // namespace

void ConfigKeys::refuse_if_set(const std::string& key, const std::string& why) {
  const auto value = find({key});
  if (value && !is_off(*value))
    value->fail(why, "remove the key, or describe the model in our own format");
}

void ConfigKeys::refuse_unknown(const std::string& harmless) const {
  std::vector<std::string> known = requested_;
  for (const auto& words : {words_in(harmless), harmless_keys})
    known.insert(known.end(), words.begin(), words.end());
  const auto is_known = [&](const std::string& key) {
    return std::find(known.begin(), known.end(), key) != known.end() || is_harmless_by_kind(key);
  };
  const auto check = [&](const JsonValue& object, const std::string& within,
                         const auto& check_inside) -> void {
    for (const std::string& key : object.keys()) {
      const auto value = object.find(key);
      if (!value || is_known(within + key) || is_known(key) || is_off(*value)) continue;
      const std::string inside = within + key + "/";
      const auto is_inside = [&](const std::string& path) { return path.starts_with(inside); };
      if (value->is_object() && std::any_of(known.begin(), known.end(), is_inside)) {
        check_inside(*value, inside, check_inside);
        continue;
      }
      const std::string near = nearest(key, requested_);
      object.fail("the key '" + shown_text(key) + "' is unknown and may change the model's shape",
                  near.empty() ? "remove it if it does not" : "did you mean '" + near + "'?");
    }
  };
  check(json_, "", check);
}

namespace {

// Types whose layers nothing prices, by what these have.
const WordPairs unpriced_types = words_by_meaning({
    {"Mamba layers", "falcon_mamba mamba mamba2 codegen_mamba nemotron_h_omni plamo2 zamba zamba2"},
    {"an encoder",
     "albert bert clip clip_text_model deberta deberta-v2 distilbert electra modernbert roberta "
     "siglip vit "
     "xlm-roberta"},
    {"an encoder and a decoder",
     "bart blenderbot led m2m_100 marian mbart mt5 pegasus t5 t5gemma umt5 whisper"},
    {"positions in buckets of distances", "decoder_only_t5"},
    {"compressed and sparse attention", "deepseek_ref"},
    {"sparse attention by blocks", "minimax_m3_text phi3small"},
    {"linear attention",
     "bailing_hybrid bailing_moe_linear delta_net gated_deltanet gla gsa hgrn hgrn2 kda "
     "linear_attn retnet"},
    {"convolutions", "yuan"},
    {"recurrent layers", "recurrent_gemma rwkv rwkv5 rwkv6 rwkv7 xlstm"},
    {"layers of cross-attention to images", "mllama mllama_text_model"},
    {"embeddings in every layer, and layers that share keys and values", "gemma3n gemma3n_text"},
    {"layers whose heads and widths differ", "deci nemotron-nas openelm"},
    {"layers whose numbers of heads differ", "step3p5 step3p7"},
    {"norms behind the layers", "git"},
    {"an MLP behind the experts", "openmoe"},
});

// Types whose file does not say what a family's keys say.
const WordPairs unread_types = words_by_meaning({
    {"has keys of its own", "falcon_perception hf_olmo molmo phi-msft"},
    {"does not say which language model it has", "minicpmo minicpmv"},
});

// What is said of the type, or "".
std::string meaning_of(const std::string& type, const WordPairs& meanings) {
  const auto found = std::find_if(meanings.begin(), meanings.end(),
                                  [&](const auto& entry) { return entry.first == type; });
  return found == meanings.end() ? "" : found->second;
}

[[noreturn]] void fail_unpriced(const JsonValue& at, const std::string& name,
                                const std::string& layers) {
  at.fail("the " + name + " has " + layers + ", which nothing prices",
          "take a model of attention and MLPs or experts");
}

const Family* family_named(const std::string& type) {
  for (const Family& family : hugging_face_families())
    if (family.type == type) return &family;
  return nullptr;
}

// Drafts of speculative decoding carry the model_type of an ordinary model.
void refuse_draft(const JsonValue& json) {
  if (const auto words = json.find("draft_vocab_size"))
    words->fail("is of a model that drafts tokens for another, whose layers it reads",
                "name that model");
  const auto classes = json.find("architectures");
  if (!classes || classes->elements().empty()) return;
  const JsonValue first = classes->elements().front();
  for (const char* word : {"DraftModel", "Eagle"})
    if (first.text().find(word) != std::string::npos)
      first.fail("'" + shown_text(first.text()) +
                     "' drafts tokens for another model, whose layers it reads",
                 "name that model");
}

// The family of the model_type, else of the class name in "architectures"; null without either.
const Family* family_in(const JsonValue& json) {
  if (const auto type = json.find("model_type"); type && !type->text().empty()) {
    const std::string word = type->text();
    if (const Family* family = family_named(word)) return family;
    if (const std::string layers = meaning_of(word, unpriced_types); !layers.empty())
      fail_unpriced(*type, "model_type '" + word + "'", layers);
    if (const std::string why = meaning_of(word, unread_types); !why.empty())
      type->fail("the model_type '" + word + "' " + why + ", so it is not read",
                 "take the file of the same model in another type, or describe it in our own "
                 "format");
    const std::string near = nearest(word, hugging_face_types());
    type->fail("the model_type '" + shown_text(word) + "' is unknown",
               near.empty() ? "known are " + joined(hugging_face_types())
                            : "did you mean '" + near + "'?");
  }
  if (const auto classes = json.find("architectures"); classes && !classes->elements().empty()) {
    const JsonValue first = classes->elements().front();
    const std::string name = first.text();
    for (const Family& family : hugging_face_families())
      if (name.starts_with(family.architecture)) return &family;
    std::string type = name.substr(0, name.find("For"));
    for (char& letter : type) letter = static_cast<char>(std::tolower(letter));
    if (const std::string layers = meaning_of(type, unpriced_types); !layers.empty())
      fail_unpriced(first, "architecture '" + shown_text(name) + "'", layers);
    first.fail("the architecture '" + shown_text(name) + "' is unknown", "state the model_type");
  }
  return nullptr;
}

// The part of a multimodal model's file that describes its language model.
std::optional<JsonValue> language_part(const JsonValue& json) {
  for (const char* key :
       {"text_config", "llm_config", "llm_cfg", "language_config", "thinker_config"})
    if (const auto part = json.find(key);
        part && part->is_object() && !json.has("num_hidden_layers"))
      return part;
  return std::nullopt;
}

Model read_with(const Family& family, const JsonValue& json, bool is_part) {
  refuse_draft(json);
  ConfigKeys config{json};
  for (const char* key :
       {"is_encoder_decoder", "add_cross_attention", "cross_attention_hidden_size"})
    config.refuse_if_set(key, "only decoder-only models are read");
  // Gemma 4: tokens of one image see each other.
  if (const auto both = json.find("use_bidirectional_attention");
      !both || !both->is_string() || both->text() != "vision")
    config.refuse_if_set("use_bidirectional_attention", "only causal attention is modelled");
  config.refuse_if_set("pruned_heads", "pruned heads are not read");
  Model model = read_family(family, config, is_part);
  // The words around a text say nothing about its layers.
  config.refuse_unknown(family.harmless + " text_config");
  return model;
}

}  // namespace

bool is_hugging_face(const JsonValue& json) {
  if (json.has("schema")) return false;
  for (const char* key : {"model_type", "architectures", "text_config", "num_hidden_layers",
                          "hidden_size", "n_embd", "llm_config", "llm_cfg", "thinker_config"})
    if (json.has(key)) return true;
  return false;
}

Model parse_hugging_face(const JsonValue& json) {
  const auto part = language_part(json);
  if (!part) {
    if (const Family* family = family_in(json)) return read_with(*family, json, false);
    json.fail("the key 'model_type' is missing", "add it, such as \"llama\"");
  }
  if (language_part(*part)) return parse_hugging_face(*part);
  const Family* family = family_in(*part);
  if (!family) family = family_in(json);
  if (!family) part->fail("the key 'model_type' is missing", "add it, such as \"llama\"");
  Model model = read_with(*family, *part, true);
  // The rest of the file describes images and sounds.
  if (const auto tied = json.find("tie_word_embeddings"); tied && !part->has("tie_word_embeddings"))
    model.tied_embeddings = tied->boolean();
  return model;
}

const std::vector<std::string>& hugging_face_types() {
  static const std::vector<std::string> types = [] {
    std::vector<std::string> names;
    for (const Family& family : hugging_face_families()) names.push_back(family.type);
    return names;
  }();
  return types;
}

}  // namespace orrery
