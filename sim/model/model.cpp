#include "sim/model/model.hpp"

#include <algorithm>
#include <cassert>
#include <filesystem>

#include "sim/core/catalog.hpp"
#include "sim/core/object_reader.hpp"
#include "sim/core/value_list.hpp"
#include "sim/model/hugging_face.hpp"
#include "sim/model/layer_pattern.hpp"
#include "sim/model/model_defaults.hpp"
#include "sim/model/model_name.hpp"

namespace fs = std::filesystem;

namespace orrery {

std::string fault_of_groups(const Experts& experts) {
  const auto number = [](std::int64_t n) { return std::to_string(n); };
  if (experts.count % experts.groups != 0 || experts.groups_per_token > experts.groups)
    return number(experts.count) + " experts do not form " + number(experts.groups) +
           " groups of which a token reaches " + number(experts.groups_per_token);
  const std::int64_t reached = experts.count / experts.groups * experts.groups_per_token;
  if (experts.per_token > reached && experts.per_token <= experts.count)
    return "a token cannot visit " + number(experts.per_token) + " of the " + number(reached) +
           " experts in " + number(experts.groups_per_token) + " of " + number(experts.groups) +
           " groups";
  return "";
}
namespace {

const std::vector<std::string>& own_keys() {
  static const std::vector<std::string> keys{
      "schema", "name", "source",
      // Sizes.
      "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "seq", "pretraining_seq",
      // The layer.
      "swiglu", "norm", "norm_bias", "norms_per_layer", "qk_norm", "positions", "position_rows",
      "bias", "qkv_bias", "out_bias", "mlp_bias", "attention_sinks", "clamped_activation",
      "parallel_residual", "tied_embeddings", "mla", "window", "global_every", "prediction_layers",
      // Experts.
      "experts", "top_k", "moe_ffn", "shared_expert_ffn", "dense_layers", "moe_every",
      "expert_groups", "groups_per_token", "correction_bias",
      // Formats of the published weights, as in its publisher's config.json.
      "quantization_config"};
  return keys;
}

bool flag(ObjectReader& reader, const std::string& key, bool absent) {
  bool value = absent;
  reader.optional(key, [&](const JsonValue& written) { value = written.boolean(); });
  return value;
}

constexpr std::int64_t assumed_sequence = 8192;

std::int64_t integer(ObjectReader& reader, const std::string& key, std::int64_t absent,
                     std::int64_t minimum, std::int64_t maximum) {
  std::int64_t value = absent;
  reader.optional(key,
                  [&](const JsonValue& written) { value = written.integer(minimum, maximum); });
  return value;
}

// A required key; after an error the value is one that causes no others.
std::int64_t size(ObjectReader& reader, const std::string& key, std::int64_t maximum,
                  std::int64_t otherwise = 1) {
  std::int64_t value = otherwise;
  reader.required(key, [&](const JsonValue& written) { value = written.integer(1, maximum); });
  return value;
}

std::string name_from_path(const std::string& file) {
  if (file.empty()) return "";
  const fs::path path = fs::absolute(file).lexically_normal();
  return path.filename() == "config.json" && path.has_relative_path()
             ? path.parent_path().filename().string()
             : path.stem().string();
}

LatentAttention latent_of(const JsonValue& json) {
  if (!json.is_object()) return deepseek_latent_attention();
  ObjectReader reader{
      json, {"q_lora_rank", "kv_lora_rank", "qk_head_dim", "qk_pos_emb_head_dim", "v_head_dim"}};
  LatentAttention latent;
  latent.q_rank = integer(reader, "q_lora_rank", 0, 0, max_width);
  latent.kv_rank = size(reader, "kv_lora_rank", max_width);
  latent.nope_dim = size(reader, "qk_head_dim", max_width);
  latent.rope_dim = size(reader, "qk_pos_emb_head_dim", max_width);
  latent.v_dim = size(reader, "v_head_dim", max_width);
  reader.raise();
  return latent;
}

void read_pretraining(ObjectReader& reader, Model& model) {
  reader.optional("pretraining_seq", [&](const JsonValue& trained) {
    const bool sourced = trained.is_object();
    if (sourced) trained.allow_only({"value", "source"});
    model.pretraining_sequence =
        (sourced ? trained.at("value") : trained)
            .integer(1, model.max_sequence > 0 ? model.max_sequence : max_tokens);
  });
}

void read_sizes(ObjectReader& reader, const ModelDefaults& defaults, Model& model) {
  const JsonValue& json = reader.json();
  model.layers = static_cast<int>(size(reader, "layers", max_layers, max_layers));
  model.hidden = size(reader, "hidden", max_width);
  model.heads = size(reader, "heads", max_heads);
  model.kv_heads = integer(reader, "kv_heads", model.heads, 1, max_heads);
  reader.attempt([&] {
    if (is_latent(json)) model.latent = latent_of(json.at("mla"));
  });
  model.head_dim = integer(reader, "head_dim", model.head_dim, 1, max_width);
  if (model.latent) {  // Every query head has separate keys, computed from the latent.
    model.kv_heads = model.heads;
    model.head_dim = model.latent->nope_dim + model.latent->rope_dim;
  }
  reader.check([&] {
    if (model.head_dim == 0 && model.hidden % model.heads != 0)
      json.fail(std::to_string(model.heads) + " heads do not divide a hidden size of " +
                    std::to_string(model.hidden),
                "state head_dim");
  });
  if (model.head_dim == 0) model.head_dim = model.hidden / model.heads;
  // 4 h is the width of the original transformer and of every GPT (arXiv 1706.03762, section 3.3).
  const std::int64_t dense_ffn = defaults.dense_ffn ? defaults.dense_ffn : 4 * model.hidden;
  model.ffn = integer(reader, "ffn", dense_ffn, 1, max_width);
  // GPT-2's 50,257 tokens padded to a multiple of 1,024: Narayanan et al., SC'21, section 5.
  model.vocab = integer(reader, "vocab", 51'200, 1, max_tokens);
  model.max_sequence = size(reader, "seq", max_tokens, 0);
  read_pretraining(reader, model);
}

void read_layer(ObjectReader& reader, const ModelDefaults& defaults, Model& model) {
  model.gated = flag(reader, "swiglu", model.gated);
  reader.optional("norm", [&](const JsonValue& norm) {
    model.norm = choice<NormKind>(norm, {"rms", "layer"});
    model.norm_bias = model.norm == NormKind::layer;
  });
  model.norm_bias = flag(reader, "norm_bias", model.norm_bias);
  model.norms_per_layer = static_cast<int>(integer(reader, "norms_per_layer", 2, 1, 8));
  model.qk_norm = flag(reader, "qk_norm", model.qk_norm);
  reader.optional("bias", [&](const JsonValue& bias) {
    model.qkv_bias = model.out_bias = model.mlp_bias = bias.boolean();
  });
  model.qkv_bias = flag(reader, "qkv_bias", model.qkv_bias);
  model.out_bias = flag(reader, "out_bias", model.out_bias);
  model.mlp_bias = flag(reader, "mlp_bias", model.mlp_bias);
  model.attention_sinks = flag(reader, "attention_sinks", model.attention_sinks);
  model.clamped_activation = flag(reader, "clamped_activation", model.clamped_activation);
  model.parallel_residual = flag(reader, "parallel_residual", false);
  reader.attempt([&] {
    if (model.parallel_residual && model.norms_per_layer > 2)
      reader.json()
          .at("norms_per_layer")
          .fail("is more than parallel blocks have: one that both read, or one each",
                "write 1 or 2");
  });
  model.tied_embeddings = flag(reader, "tied_embeddings", model.tied_embeddings);

  Positions positions = defaults.positions;
  const bool knows_positions = reader.optional("positions", [&](const JsonValue& word) {
    positions = choice<Positions>(word, {"rotary", "yarn", "learned", "alibi", "none"});
  });
  model.scaled_rotary = positions == Positions::yarn;
  model.rotary = positions == Positions::rotary || model.scaled_rotary;
  if (positions == Positions::learned)
    model.learned_positions =
        integer(reader, "position_rows", model.max_sequence, model.max_sequence, max_tokens);
  else if (knows_positions)
    reader.optional("position_rows", [](const JsonValue& rows) {
      rows.fail("means nothing in a model without a table of positions",
                "remove it, or write \"positions\": \"learned\"");
    });

  model.prediction_layers = static_cast<int>(
      integer(reader, "prediction_layers", model.prediction_layers, 0, max_layers));

  model.window = integer(reader, "window", model.window, 0, max_tokens);
  const int global_every =
      static_cast<int>(integer(reader, "global_every", defaults.global_every, 0, max_layers));
  if (model.window == 0) return;
  for (int layer = 0; layer < model.layers; ++layer)
    model.layer_is_local.push_back(global_every == 0 || (layer + 1) % global_every != 0);
}

void read_experts(ObjectReader& reader, const ModelDefaults& defaults, Model& model) {
  if (!reader.json().has("experts")) {
    // The errors are one, as they have one cause.
    reader.check([&] {
      for (const char* key : {"top_k", "moe_ffn", "shared_expert_ffn", "dense_layers", "moe_every"})
        if (const auto orphan = reader.json().find(key))
          orphan->fail("means nothing in a model without experts", "add the key 'experts'");
    });
    return;
  }
  Experts experts;
  experts.count = size(reader, "experts", max_experts);
  experts.per_token = size(reader, "top_k", max_experts);
  experts.ffn = integer(reader, "moe_ffn", model.ffn, 1, max_width);
  experts.shared_ffn = integer(reader, "shared_expert_ffn",
                               defaults.one_shared_expert ? experts.ffn : 0, 0, max_width);
  experts.groups = integer(reader, "expert_groups", defaults.expert_groups, 1, max_experts);
  experts.groups_per_token =
      integer(reader, "groups_per_token", defaults.groups_per_token, 1, max_experts);
  experts.correction_bias = flag(reader, "correction_bias", defaults.correction_bias);
  const std::int64_t dense = integer(reader, "dense_layers", 0, 0, model.layers);
  const std::int64_t every = integer(reader, "moe_every", 1, 1, model.layers);
  for (int layer = 0; layer < model.layers; ++layer)
    model.layer_has_experts.push_back(layer >= dense && (layer + 1) % every == 0);
  model.experts = experts;
}

// A model of layers that are not all alike says of itself what holds for all of them.
Model parse_patterned(const JsonValue& json) {
  ObjectReader reader{json,
                      {"schema",
                       "name",
                       "source",
                       "hidden",
                       "vocab",
                       "seq",
                       "pretraining_seq",
                       "norm",
                       "norms_per_layer",
                       "tied_embeddings",
                       "positions",
                       "mixers",
                       "ffns",
                       "pattern",
                       "streams",
                       "prediction_layers",
                       "prediction",
                       "prediction_repeats",
                       "quantization_config",
                       "expert_dtype",
                       "mamba_ssm_dtype"}};
  Model model;
  const auto named = json.find("name");
  model.name = named ? named->text() : name_from_path(json.place().file);
  reader.optional("source", [&](const JsonValue& source) { model.source = source.text(); });
  model.hidden = size(reader, "hidden", max_width);
  model.vocab = size(reader, "vocab", max_tokens);
  model.max_sequence = size(reader, "seq", max_tokens, 0);
  read_pretraining(reader, model);
  reader.optional("norm", [&](const JsonValue& norm) {
    model.norm = choice<NormKind>(norm, {"rms", "layer"});
    model.norm_bias = model.norm == NormKind::layer;
  });
  model.norms_per_layer = static_cast<int>(integer(reader, "norms_per_layer", 2, 2, 4));
  model.tied_embeddings = flag(reader, "tied_embeddings", false);
  model.prediction_layers =
      static_cast<int>(integer(reader, "prediction_layers", 0, 0, max_layers));
  model.prediction_repeats = flag(reader, "prediction_repeats", false);
  reader.attempt([&] {
    LayerPattern pattern = parse_layer_pattern(json);
    pattern.norms_of_part = model.norms_per_layer / 2;
    model.layers = static_cast<int>(pattern.layers.size());
    model.pattern = std::make_shared<const LayerPattern>(std::move(pattern));
  });
  reader.raise();
  return model;
}

Model parse_own(const JsonValue& json) {
  if (json.has("schema")) require_schema(json, "orrery.model/1");
  if (json.has("pattern")) return parse_patterned(json);
  ObjectReader reader{json, own_keys()};
  const auto named = json.find("name");
  const std::string name = named ? named->text() : name_from_path(json.place().file);
  const ModelDefaults defaults = model_defaults(name, json);
  Model model = defaults.model;
  model.name = name;
  reader.optional("source", [&](const JsonValue& source) { model.source = source.text(); });
  read_sizes(reader, defaults, model);
  read_layer(reader, defaults, model);
  read_experts(reader, defaults, model);
  reader.raise();
  return model;
}

// Invariants of both formats, so that later code neither divides by zero nor overflows.
void check(const Model& model, const JsonValue& json) {
  const auto text = [](std::int64_t n) { return std::to_string(n); };
  ErrorList errors;
  errors.attempt([&] {
    if (!model.pattern && model.heads % model.kv_heads != 0)
      json.fail(text(model.heads) + " heads cannot share " + text(model.kv_heads) +
                    " key/value heads evenly",
                "the first must be a multiple of the second");
  });
  errors.attempt([&] {
    if (model.experts && model.experts->per_token > model.experts->count)
      json.fail("a token cannot visit " + text(model.experts->per_token) + " of " +
                    text(model.experts->count) + " experts",
                "lower the experts per token");
  });
  errors.attempt([&] {
    if (!model.experts) return;
    const Experts& experts = *model.experts;
    if (const std::string no = fault_of_groups(experts); !no.empty())
      json.fail(no, "the groups must be equal, and those that a token reaches hold enough experts");
  });
  errors.raise();
  // Floating point, since the exact count would overflow.
  const auto real = [](std::int64_t n) { return static_cast<double>(n); };
  const double hidden = real(model.hidden);
  double layer =
      4 * hidden * real(model.heads) * real(model.head_dim) + 3 * hidden * real(model.ffn);
  if (const auto& experts = model.experts)
    layer += 3 * hidden * (real(experts->count) * real(experts->ffn) + real(experts->shared_ffn));
  if (const auto& latent = model.latent) {
    const double ranks = real(latent->q_rank + latent->kv_rank);
    const double dims = real(latent->nope_dim + latent->rope_dim + latent->v_dim);
    layer += (real(model.heads) * (ranks + hidden) + hidden) * dims + hidden * ranks;
  }
  const double layers =
      model.pattern ? approximate_parameters(*model.pattern, model.hidden) : layer * model.layers;
  const double total = layers + 3 * hidden * real(model.vocab + model.max_sequence);
  if (total > max_parameters)
    json.fail("has more than 1e16 parameters", "check the sizes; the largest known have 1e13");
}

}  // namespace

void require_alike(const Model& model, const std::string& what, const Place& at) {
  if (!model.pattern) return;
  std::vector<std::string> kinds;
  for (const LayerPattern::NamedMixer& one : model.pattern->mixers)
    if (const std::string kind{one.mixer->kind()};
        std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
      kinds.push_back(kind);
  fail_infeasible(at,
                  what + " of such layers as '" + shown_text(model.name) + "' has (" +
                      joined(kinds) + ") is not known yet",
                  "orrery check --model shows their sizes, and orrery estimate what most of them "
                  "take in training");
}

Model parse_model(const JsonValue& json) {
  Model model = is_hugging_face(json) ? parse_hugging_face(json) : parse_own(json);
  if (const auto name = json.find("name")) model.name = name->text();
  if (model.name.empty()) model.name = name_from_path(json.place().file);
  check(model, json);
  describe_layers(model);
  model.document = json.with("name", JsonValue::parse(json_quoted(model.name), ""));
  return model;
}

bool has_mixer(const Model& model) { return model.heads > 0 || model.mixer; }

bool has_feed_forward(const Model& model) { return model.ffn > 0 || model.experts; }

std::int64_t value_width(const Model& model) {
  if (model.latent) return model.latent->v_dim;
  return model.value_dim > 0 ? model.value_dim : model.head_dim;
}

std::int64_t default_sequence(const Model& model) {
  if (model.pretraining_sequence > 0) return model.pretraining_sequence;
  return std::min(assumed_sequence, model.max_sequence);
}

bool guesses_sequence(const Model& model) {
  return model.pretraining_sequence == 0 && model.max_sequence > assumed_sequence;
}

Model read_model(const std::string& word, const Place& at) {
  std::error_code code;
  const std::vector<std::string> known = list_catalog("workloads/models");
  const bool is_path = fs::exists(word, code) || word.ends_with(".json");
  if (!is_path && std::find(known.begin(), known.end(), word) == known.end()) {
    if (const auto same = catalog_model(word)) {
      if (!names_weight_format(word)) {
        Model model = read_model(*same, at);
        model.max_sequence = longest_of_name(word).value_or(model.max_sequence);
        return model;
      }
      fail_input(at, "'" + shown_text(word) + "' names weights of fewer bits than '" + *same + "'",
                 "write '" + *same + "'; a deployment takes the format as --weights");
    }
    if (is_hub_name(word))
      fail_input(at, "'" + shown_text(word) + "' is neither a file nor in the catalog",
                 nearest_catalog_models(word) +
                     "fetch its config.json and name the file, as nothing is downloaded");
  }
  fs::path path = find_in_catalog("workloads/models", word, at);
  if (fs::is_directory(path, code)) {
    if (!fs::exists(path / "config.json", code))
      fail_input({path.string(), ""}, "is a folder without a config.json",
                 "name a model file or a folder that holds a Hugging Face config.json");
    path /= "config.json";
  }
  const JsonValue file = JsonValue::read_file(path.string());
  const auto inside = file.find("model");  // Plan files have their model here.
  Model model =
      parse_model(inside && inside->is_object() ? *inside : carried_or_self(file, "models"));
  // ModelOpt writes the formats of weights next to config.json.
  const fs::path formats = path.parent_path() / "hf_quant_config.json";
  if (path.filename() == "config.json" && fs::exists(formats, code))
    model.document =
        model.document->with("hf_quant_config", JsonValue::read_file(formats.string()));
  return model;
}

// Parameter counts of a decoder-only transformer, h hidden, n heads, k key/value heads, d head_dim:
//
//   attention   h n d + 2 h k d + n d h               biases n d + 2 k d and h, q/k norms 2 d
//                                                     or n d + k d
//   latent      h r_q + r_q + r_q n (d_n + d_r)       queries, with the norm of their r_q channels
//             + h (r_kv + d_r) + r_kv + r_kv n (d_n + d_v) + n d_v h
//   MLP         3 h f gated, 2 h f otherwise          biases 2 f + h or f + h
//   experts     E MLPs + one MLP of the shared width + router h E + E correction biases
//   total       layers + final norm + V h, once more for an untied head, + learned positions
//
// Source: the published totals of sixteen models, which this gives to the last parameter
// (parameters_test.cpp); latent attention is DeepSeek-V2's, arXiv 2405.04434.
namespace {

std::int64_t latent_attention_parameters(const Model& model, const LatentAttention& latent) {
  const std::int64_t query_width = model.heads * (latent.nope_dim + latent.rope_dim);
  const std::int64_t queries = latent.q_rank == 0 ? model.hidden * query_width
                                                  : model.hidden * latent.q_rank + latent.q_rank +
                                                        latent.q_rank * query_width;
  const std::int64_t keys_and_values =
      model.hidden * (latent.kv_rank + latent.rope_dim) + latent.kv_rank +
      latent.kv_rank * model.heads * (latent.nope_dim + latent.v_dim);
  return queries + keys_and_values + model.heads * latent.v_dim * model.hidden;
}

std::int64_t one_mlp(const Model& model, std::int64_t width) {
  if (width == 0) return 0;
  const std::int64_t into = model.gated ? 2 : 1;
  const std::int64_t biases = model.mlp_bias ? into * width + model.hidden : 0;
  return (into + 1) * model.hidden * width + biases;
}

// Parameters of the router, the shared experts and `routed` of the routed experts.
std::int64_t experts_parameters(const Model& model, const Experts& experts, std::int64_t routed) {
  const std::int64_t router_biases =
      (experts.correction_bias ? experts.count : 0) + (model.mlp_bias ? experts.count : 0);
  return routed * one_mlp(model, experts.ffn) + one_mlp(model, experts.shared_ffn) +
         model.hidden * experts.count + router_biases;
}

bool has_experts(const Model& model, int layer) {
  return !model.layer_has_experts.empty() &&
         model.layer_has_experts.at(static_cast<std::size_t>(layer));
}

}  // namespace

std::int64_t attention_parameters(const Model& model) {
  if (model.latent) return latent_attention_parameters(model, *model.latent);
  const std::int64_t query_width = model.heads * model.head_dim;
  const std::int64_t kv_width = 2 * model.kv_heads * model.head_dim;
  std::int64_t count = model.hidden * (query_width + kv_width) + query_width * model.hidden;
  if (model.qkv_bias) count += query_width + kv_width;
  if (model.out_bias) count += model.hidden;
  if (model.qk_norm) count += model.wide_qk_norm ? query_width + kv_width / 2 : 2 * model.head_dim;
  if (model.attention_sinks) count += model.heads;
  return count;
}

std::int64_t mlp_parameters(const Model& model, int layer) {
  assert(0 <= layer && layer < model.layers);
  if (!has_experts(model, layer)) return one_mlp(model, model.ffn);
  assert(model.experts);
  return experts_parameters(model, *model.experts, model.experts->count);
}

std::int64_t norm_parameters(const Model& model, std::int64_t width) {
  return model.norm_bias ? 2 * width : width;
}

ParameterCount count_parameters(const Model& model) {
  ParameterCount count;
  count.embedding = (model.vocab + model.learned_positions) * model.hidden;
  count.head = model.tied_embeddings ? 0 : model.vocab * model.hidden;
  count.final_norm = norm_parameters(model, model.hidden);
  count.total = count.active = count.embedding + count.head + count.final_norm;
  if (model.pattern) {
    const std::int64_t streams = head_stream_parameters(*model.pattern, model.hidden);
    count.total += streams;
    count.active += streams;
    for (const LayerPattern::Layer& layer : model.pattern->layers) {
      count.layers.push_back(layer_parameters(model, layer, false));
      count.total += count.layers.back();
      count.active += layer_parameters(model, layer, true);
    }
    return count;
  }
  const std::int64_t attention_and_norms =
      attention_parameters(model) + model.norms_per_layer * norm_parameters(model, model.hidden);
  for (int layer = 0; layer < model.layers; ++layer) {
    const std::int64_t all = attention_and_norms + mlp_parameters(model, layer);
    count.layers.push_back(all);
    count.total += all;
    count.active += has_experts(model, layer)
                        ? attention_and_norms +
                              experts_parameters(model, *model.experts, model.experts->per_token)
                        : all;
  }
  return count;
}

}  // namespace orrery
