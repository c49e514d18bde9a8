#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/json_value.hpp"

namespace orrery {

/// Limits far above all published models. They catch mistyped digits, and with max_parameters they
/// keep every count inside 64 bits.
constexpr std::int64_t max_layers = 10'000;
constexpr std::int64_t max_heads = 100'000;
constexpr std::int64_t max_experts = 100'000;
constexpr std::int64_t max_width = 10'000'000;      ///< hidden, ffn, ranks, head dimensions
constexpr std::int64_t max_tokens = 1'000'000'000;  ///< vocabulary, sequence, window
constexpr double max_parameters = 1e16;

enum class NormKind { rms, layer };

/// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): ranks and head dimensions.
struct LatentAttention {
  std::int64_t q_rank = 0;  ///< 0: queries are projected in one step.
  std::int64_t kv_rank = 0;
  std::int64_t nope_dim = 0;  ///< Each head's part without position.
  std::int64_t rope_dim = 0;  ///< Per query head, and once for all key heads.
  std::int64_t v_dim = 0;
};

/// The mixture of experts that replaces the MLP in some layers.
struct Experts {
  std::int64_t count = 0;
  std::int64_t per_token = 0;
  std::int64_t ffn = 0;         ///< Width of one routed expert.
  std::int64_t shared_ffn = 0;  ///< Width of all shared experts together; 0: none.
  std::int64_t groups = 1;      ///< Device groups; a token reaches `groups_per_token` of them.
  std::int64_t groups_per_token = 1;
  bool correction_bias = false;  ///< One trained or balanced bias per expert (DeepSeek-V3).
  bool shared_gate = false;      ///< A logit scales the shared experts' output (Qwen).
  /// Channels that routed experts read and write, between two products with the hidden ones; 0: the
  /// hidden ones themselves (LatentMoE, Nemotron 3).
  std::int64_t latent = 0;
  bool latent_norm = false;  ///< Of these channels, behind the experts (Kimi-K3).

  /// Channels that a routed expert reads and writes, in a model of `hidden` channels.
  std::int64_t channels(std::int64_t hidden) const { return latent > 0 ? latent : hidden; }

  bool operator==(const Experts&) const = default;
};

/// The reason why the experts' groups cannot be; "" if they can: equal groups, and enough experts
/// in those that a token reaches.
std::string fault_of_groups(const Experts& experts);

struct LayerPattern;
class Mixer;

/// The shape of a decoder-only transformer. Sizes are those of the whole model, not of a rank.
struct Model {
  std::string name;
  std::string source;

  int layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  ///< Equals heads with latent attention.
  std::int64_t head_dim = 0;  ///< Width of q and k; nope_dim + rope_dim with latent attention.
  std::int64_t ffn = 0;       ///< Width of the dense MLP.
  bool gated = false;         ///< SwiGLU, GeGLU: three matrices instead of two.
  std::int64_t vocab = 0;
  std::int64_t max_sequence = 0;
  /// Tokens in a sequence of its pre-training, before stages for long contexts; 0: unknown.
  std::int64_t pretraining_sequence = 0;
  bool tied_embeddings = false;
  /// Rows of a learned position table, max_sequence or more; 0: rotary, ALiBi.
  std::int64_t learned_positions = 0;
  bool rotary = true;
  bool scaled_rotary = false;  ///< YaRN, whose positions also scale queries and keys.

  NormKind norm = NormKind::rms;
  bool norm_bias = false;  ///< A bias vector next to the scale: most layer norms, but not MPT's.
  int norms_per_layer = 2;
  bool qk_norm = false;       ///< A head_dim vector each for queries and keys.
  bool wide_qk_norm = false;  ///< The vectors of queries and keys span all of their heads.
  bool qkv_bias = false;
  bool out_bias = false;
  bool output_gate = false;      ///< A second part of the queries scales the output (Qwen3-Next).
  bool values_are_keys = false;  ///< No matrix of values (Gemma 4).
  std::int64_t value_dim = 0;    ///< Width of a head's values; 0: head_dim, or that of `latent`.
  bool chunked_window = false;   ///< A window is the chunk that the query lies in (Llama 4).
  bool mlp_bias = false;         ///< Includes those of each expert and of the router.
  bool attention_sinks = false;  ///< One trained logit per head (GPT-OSS).
  bool clamped_activation = false;  ///< Both sides of the gate are clamped first (GPT-OSS).
  bool parallel_residual = false;

  std::optional<LatentAttention> latent;
  std::optional<Experts> experts;
  std::vector<bool> layer_has_experts;  ///< One entry a layer; empty: no layer has.
  std::int64_t window = 0;              ///< Tokens that a local layer attends to; 0: all.
  std::vector<bool> layer_is_local;     ///< One entry a layer; empty: no layer is.
  int prediction_layers = 0;            ///< Multi-token prediction; not counted in the totals.
  bool prediction_repeats = false;      ///< One set of weights predicts all later tokens.

  /// The layers, where they are not all of one attention and one MLP or experts: then the sizes of
  /// attention and of the MLP above say nothing. Null: they are.
  std::shared_ptr<const LayerPattern> pattern;
  /// What mixes tokens in place of attention; null: attention, or nothing without heads. Only in
  /// LayerPattern::shapes.
  std::shared_ptr<const Mixer> mixer;

  std::optional<JsonValue> document;  ///< The document that it was read from, with its name.
};

/// Whether layers have attention or another mixer, and whether they have an MLP or experts: models
/// of layers that are alike have both, a layer of a pattern may have one.
bool has_mixer(const Model& model);
bool has_feed_forward(const Model& model);
/// Width of the values of an attention head.
std::int64_t value_width(const Model& model);

/// Default length of sequences in training: that of the model's pre-training, or if unknown the
/// smaller of 8,192, which Llama 3 was trained with (arXiv 2407.21783, section 3.4.1), and the
/// model's maximum.
std::int64_t default_sequence(const Model& model);
/// The default is a guess: the model may take longer sequences, and its pre-training is unknown.
bool guesses_sequence(const Model& model);

/// Trainable parameters (FORMATS: golden totals are the published ones, to the last parameter).
struct ParameterCount {
  std::int64_t embedding = 0;  ///< Token and position tables.
  std::int64_t head = 0;       ///< Output head; 0 if tied to the embedding.
  std::int64_t final_norm = 0;
  std::vector<std::int64_t> layers;  ///< One entry a layer, all its experts included.
  std::int64_t total = 0;
  std::int64_t active = 0;  ///< Per token, with only the routed experts that it visits.
};

/// Attention weights of one layer with biases and q/k norms, but without the layer's own norms.
std::int64_t attention_parameters(const Model& model);
/// Weights of layer `layer`'s MLP or router and experts, with biases.
std::int64_t mlp_parameters(const Model& model, int layer);
/// One norm's vectors over `width` channels.
std::int64_t norm_parameters(const Model& model, std::int64_t width);

ParameterCount count_parameters(const Model& model);

/// Reads a model in this project's JSON, the `model` object of a validation case, or a Hugging Face
/// config.json, distinguished by their keys. `word` is a catalog name, a file, a folder with a
/// config.json, or a plan file with a model. Errors name the key and the nearest known one.
Model read_model(const std::string& word, const Place& at);
/// The same for a document, or an object in one, of either format under its key 'name'. The default
/// name is that of the file.
Model parse_model(const JsonValue& json);

/// Errors (infeasible): the model has a pattern of layers, and `what` ("serving") knows only models
/// whose layers are alike.
void require_alike(const Model& model, const std::string& what, const Place& at);

}  // namespace orrery
