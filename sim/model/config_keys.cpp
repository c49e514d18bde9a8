#include "sim/model/config_keys.hpp"

#include <algorithm>

#include "sim/core/nearest.hpp"

namespace orrery {

std::optional<JsonValue> ConfigKeys::find(const std::vector<std::string>& spellings) {
  asked_.insert(asked_.end(), spellings.begin(), spellings.end());
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
  std::vector<std::string> known = asked_;
  known.insert(known.end(), harmless.begin(), harmless.end());
  known.insert(known.end(), harmless_config_keys().begin(), harmless_config_keys().end());
  for (const std::string& key : json_.keys())
    if (json_.has(key) && !key.starts_with('_') &&
        std::find(known.begin(), known.end(), key) == known.end()) {
      const std::string near = nearest(key, asked_);
      json_.fail("the key '" + shown_text(key) + "' is unknown and may change the model's shape",
                 near.empty() ? "remove it if it does not" : "did you mean '" + near + "'?");
    }
}

const std::vector<std::string>& harmless_config_keys() {
  static const std::vector<std::string> keys{
      // What every transformers configuration may save (v4 and v5, PretrainedConfig).
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
      // What we add where we write one down.
      "name",
      // Numerics of a layer.
      "attention_dropout", "hidden_dropout", "classifier_dropout", "hidden_act",
      "hidden_activation", "initializer_range", "layer_norm_eps", "rms_norm_eps", "pretraining_tp",
      "quantization_config", "compression_config", "rope_scaling", "rope_theta", "rope_parameters",
      "rope_local_base_freq", "rope_interleave", "partial_rotary_factor",
      "original_max_position_embeddings", "loss_type"};
  return keys;
}

}  // namespace orrery
