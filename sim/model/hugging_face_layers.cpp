// What the keys of all families mean, under all of their spellings.
#include <algorithm>

#include "sim/model/hugging_face_families.hpp"

namespace orrery {
namespace {

using Spellings = std::vector<std::string>;

const Spellings layers_keys{"num_hidden_layers", "n_layer", "n_layers", "num_layers"};
const Spellings hidden_keys{"hidden_size", "n_embd", "n_embed", "d_model"};
const Spellings heads_keys{"num_attention_heads", "n_head", "n_heads", "num_heads"};
const Spellings kv_heads_keys{"num_key_value_heads", "n_head_kv", "attn_config/kv_n_heads"};
const Spellings head_dim_keys{"head_dim", "kv_channels", "attention_head_dim"};
const Spellings ffn_keys{"intermediate_size", "block_ff_dim",    "n_inner",
                         "ffn_dim",           "ffn_hidden_size", "ffn_config/ffn_hidden_size"};
const Spellings longest_keys{"max_position_embeddings", "n_positions", "max_seq_len"};
const Spellings tied_keys{"tie_word_embeddings", "tie_embedding"};
const Spellings expert_count_keys{"num_experts", "num_local_experts", "n_routed_experts",
                                  "moe_num_experts", "ffn_config/moe_num_experts"};
const Spellings per_token_keys{
    "num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_k", "moe_topk",
    "top_k_experts",       "ffn_config/moe_top_k"};
const Spellings shared_keys{"n_shared_experts", "num_shared_experts", "num_shared_expert",
                            "moe_num_shared_experts"};
const Spellings shared_width_keys{"shared_expert_intermediate_size", "shared_intermediate_size",
                                  "moe_shared_expert_intermediate_size"};

std::optional<std::int64_t> positive(std::int64_t value) {
  return value > 0 ? std::optional{value} : std::nullopt;
}

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

void read_sizes(ConfigKeys& config, const Family& family, bool is_part, Model& model) {
  const Model& absent = family.absent;
  const auto of_part = [&](std::int64_t size) { return is_part ? positive(size) : std::nullopt; };
  const auto blocks = config.json().find("layers_block_type");
  const auto listed = blocks ? positive(std::ssize(blocks->elements())) : std::nullopt;
  model.layers = static_cast<int>(
      config.size(layers_keys, max_layers, listed ? listed : of_part(absent.layers)));
  model.hidden = config.size(hidden_keys, max_width, of_part(absent.hidden));
  model.heads = config.size(heads_keys, max_heads, of_part(absent.heads));
  const bool by_class = absent.kv_heads && !config.is_null("num_key_value_heads");
  model.kv_heads = config.size(kv_heads_keys, max_heads, by_class ? absent.kv_heads : model.heads);
  if (by_class && !config.find(kv_heads_keys) && model.heads % absent.kv_heads != 0)
    config.json().fail("the key 'num_key_value_heads' is missing, and the default of the class, " +
                           std::to_string(absent.kv_heads) + ", does not divide " +
                           std::to_string(model.heads) + " heads",
                       "add it");
  // A width of 4 h stands for itself in every file that leaves it out.
  const bool four = absent.ffn == four_times_hidden;
  model.ffn = config.size(ffn_keys, max_width, four ? 4 * model.hidden : of_part(absent.ffn));
  const std::int64_t padded = config.count({"padded_vocab_size"}, max_tokens, 0);
  model.vocab = config.size({"vocab_size"}, max_tokens,
                            padded > 0 ? positive(padded) : of_part(absent.vocab));
  const std::int64_t trained = config.count({"seq_length", "max_sequence_length"}, max_tokens, 0);
  model.max_sequence =
      config.size(longest_keys, max_tokens, trained > 0 ? trained : absent.max_sequence);
  if (absent.learned_positions) model.learned_positions = model.max_sequence;
  if (const auto tied = config.find(tied_keys)) model.tied_embeddings = tied->boolean();
  model.scaled_rotary = scales_with_positions(config.json());
  model.prediction_layers =
      static_cast<int>(config.count({"num_nextn_predict_layers"}, max_layers, 0));
}

// Multi-head latent attention as DeepSeek's classes call it.
void read_latent(ConfigKeys& config, const LatentAttention& absent, Model& model) {
  config.refuse_if_set("attention_bias", "biases of latent attention are not modelled");
  const auto size = [&](const char* key, std::int64_t by_class) {
    return config.size({key}, max_width, positive(by_class));
  };
  model.latent = LatentAttention{
      .q_rank = config.count({"q_lora_rank"}, max_width, absent.q_rank),
      .kv_rank = size("kv_lora_rank", absent.kv_rank),
      .nope_dim = size("qk_nope_head_dim", absent.nope_dim),
      .rope_dim = size("qk_rope_head_dim", absent.rope_dim),
      .v_dim = size("v_head_dim",
                    absent.v_dim == hidden_per_head ? model.hidden / model.heads : absent.v_dim)};
  model.kv_heads = model.heads;
  model.head_dim = model.latent->nope_dim + model.latent->rope_dim;
}

void read_head_dim(ConfigKeys& config, Model& model) {
  const auto stated = config.find(head_dim_keys);
  if (stated) model.head_dim = stated->integer(1, max_width);
  if (model.head_dim > 0) return;
  if (model.hidden % model.heads != 0)
    config.json().fail(std::to_string(model.heads) + " heads do not divide a hidden size of " +
                           std::to_string(model.hidden),
                       "state head_dim");
  model.head_dim = model.hidden / model.heads;
}

// EXAONE 4 writes the pattern in letters, "LLLG": as many layers as letters.
int window_pattern(ConfigKeys& config, int absent) {
  const auto stated = config.find({"sliding_window_pattern", "_sliding_window_pattern"});
  if (!stated) return absent;
  if (!stated->is_string()) return static_cast<int>(stated->integer(1, max_layers));
  const std::string letters = stated->text();
  if (letters.empty() || letters.find('G') != letters.size() - 1 ||
      letters.find_first_not_of("LG") != letters.npos)
    stated->fail("is no pattern of local layers before a global one", "write it as \"LLLG\"");
  return static_cast<int>(letters.size());
}

void read_windows(ConfigKeys& config, const Family& family, Model& model) {
  if (family.window == FamilyWindow::own) return;
  std::vector<bool> local(static_cast<std::size_t>(model.layers));
  const auto set = [&](auto is_local) {
    for (int layer = 0; layer < model.layers; ++layer)
      local[static_cast<std::size_t>(layer)] = is_local(layer);
  };
  std::int64_t window = 0;
  if (family.window != FamilyWindow::none)
    window = config.count({"sliding_window"}, max_tokens, family.window_tokens);
  switch (family.window) {
    case FamilyWindow::none:
    case FamilyWindow::own:
      break;
    case FamilyWindow::all:
      local.assign(local.size(), true);
      break;
    case FamilyWindow::first_of_two:
      set([](int layer) { return layer % 2 == 0; });
      break;
    case FamilyWindow::pattern: {
      const int pattern = window_pattern(config, family.pattern);
      set([&](int layer) { return (layer + 1) % pattern != 0; });
      break;
    }
    case FamilyWindow::listed:
      config.find({"max_window_layers"});
      if (!config.flag("use_sliding_window", false))
        window = 0;
      else if (window > 0 && !config.json().has("layer_types"))
        config.json()
            .at("use_sliding_window")
            .fail("says that layers have windows, but not which", "add layer_types");
      break;
    case FamilyWindow::qwen:
      if (!config.flag("use_sliding_window", false)) window = 0;
      [[fallthrough]];
    case FamilyWindow::after: {
      const std::int64_t first = config.count({"max_window_layers"}, max_layers, family.pattern);
      set([&](int layer) { return layer >= first; });
      break;
    }
  }
  set_layer_windows(config, model, window, local);
}

// A number, or a list of the same number for each layer.
std::optional<std::int64_t> same_in_all_layers(ConfigKeys& config, const Spellings& spellings,
                                               std::int64_t minimum, std::int64_t maximum) {
  const auto value = config.find(spellings);
  if (!value) return std::nullopt;
  if (!value->is_array()) return value->integer(minimum, maximum);
  const auto layers = value->elements();
  if (layers.empty()) return std::nullopt;
  for (const JsonValue& layer : layers)
    if (!(layer == layers.front()))
      layer.fail("differs from the first, and nothing prices layers whose experts differ",
                 "take a model whose layers are alike");
  return layers.front().integer(minimum, maximum);
}

std::int64_t expert_size(ConfigKeys& config, const Spellings& spellings, std::int64_t maximum,
                         std::int64_t absent) {
  const auto stated = same_in_all_layers(config, spellings, 1, maximum);
  return stated ? *stated : config.size(spellings, maximum, positive(absent));
}

// One entry a layer, of which `yes` means experts.
void place_by_list(const JsonValue& list, const std::string& yes, Model& model) {
  const auto entries = list.elements();
  if (entries.size() != model.layer_has_experts.size())
    list.fail("has " + std::to_string(entries.size()) + " entries for " +
                  std::to_string(model.layers) + " layers",
              "write one a layer");
  for (std::size_t layer = 0; layer < entries.size(); ++layer)
    if ((entries[layer].is_string() ? entries[layer].text()
                                    : std::to_string(entries[layer].integer(0, 1))) != yes)
      model.layer_has_experts[layer] = false;
}

// Layers with experts: all that no key excludes.
void place_experts(ConfigKeys& config, const FamilyExperts& absent, Model& model) {
  const std::int64_t dense = config.count({"first_k_dense_replace", "moe_layer_start_index"},
                                          max_layers, absent.dense_layers);
  const auto ends = config.find({"moe_layer_end_index"});
  const std::int64_t last = ends ? ends->integer(-1, max_layers) : -1;
  const std::int64_t step = config.size(
      {"decoder_sparse_step", "moe_layer_interval", "interleave_moe_layer_step"}, max_layers, 1);
  const auto frequency = config.find({"moe_layer_freq", "moe_frequency"});
  const bool listed = frequency && frequency->is_array();
  const std::int64_t every = frequency && !listed ? frequency->integer(1, max_layers) : 1;
  for (int layer = 0; layer < model.layers; ++layer)
    model.layer_has_experts.push_back(layer >= dense && (last < 0 || layer <= last) &&
                                      (layer + 1) % step == 0 && layer % every == 0);
  if (listed) place_by_list(*frequency, "1", model);
  if (const auto kinds = config.find({"mlp_layer_types"})) place_by_list(*kinds, "sparse", model);
  if (const auto dense_layers = config.find({"mlp_only_layers"}))
    for (const JsonValue& layer : dense_layers->elements())
      model.layer_has_experts[static_cast<std::size_t>(layer.integer(0, model.layers - 1))] = false;
}

}  // namespace

void read_family_experts(ConfigKeys& config, const FamilyExperts& absent, Model& model) {
  Experts& experts = model.experts.emplace();
  experts.count = expert_size(config, expert_count_keys, max_experts, absent.count);
  experts.per_token = expert_size(config, per_token_keys, max_experts, absent.per_token);
  experts.ffn = expert_size(config, {"moe_intermediate_size"}, max_width,
                            absent.width == of_ffn ? model.ffn : absent.width);
  const auto shared = same_in_all_layers(config, shared_keys, 0, max_experts);
  const bool none = std::any_of(shared_keys.begin(), shared_keys.end(),
                                [&](const std::string& key) { return config.is_null(key); });
  experts.shared_ffn = absent.shared_width;
  if (shared || !experts.shared_ffn)
    experts.shared_ffn = experts.ffn * (shared ? *shared : none ? 0 : absent.shared);
  if (const auto width = same_in_all_layers(config, shared_width_keys, 0, max_width))
    experts.shared_ffn = *width;
  experts.groups = config.size({"n_group"}, max_experts, absent.groups);
  experts.groups_per_token = config.size({"topk_group"}, max_experts, absent.groups_per_token);
  experts.correction_bias = absent.correction_bias;
  for (const char* key : {"use_routing_bias", "moe_use_aux_free", "moe_router_enable_expert_bias"})
    experts.correction_bias = config.flag(key, experts.correction_bias);
  if (const auto method = config.find({"topk_method"}))
    experts.correction_bias = method->text() == "noaux_tc";
  place_experts(config, absent, model);
}

void set_layer_windows(ConfigKeys& config, Model& model, std::int64_t window,
                       const std::vector<bool>& is_local) {
  const auto types = config.find({"layer_types"});
  std::vector<bool> local = is_local;
  if (types) {
    const auto words = types->elements();
    if (words.size() != static_cast<std::size_t>(model.layers))
      types->fail("has " + std::to_string(words.size()) + " entries for " +
                      std::to_string(model.layers) + " layers",
                  "write one a layer");
    local.clear();
    for (const JsonValue& word : words) {
      const std::string type = word.text();
      if (type != "full_attention" && type != "sliding_attention" && type != "chunked_attention")
        word.fail("'" + shown_text(type) + "' is not a layer type that is known",
                  "write full_attention, sliding_attention or chunked_attention");
      local.push_back(type != "full_attention");
    }
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

Model read_family(const Family& family, ConfigKeys& config, bool is_part) {
  Model model = family.absent;
  model.learned_positions = 0;
  read_sizes(config, family, is_part, model);
  for (const FamilySwitch& key : family.switches)
    for (const auto flag : key.flags) model.*flag = config.flag(key.key, model.*flag);
  if (family.absent.latent)
    read_latent(config, *family.absent.latent, model);
  else
    read_head_dim(config, model);
  read_windows(config, family, model);
  if (family.experts) read_family_experts(config, *family.experts, model);
  if (family.rest) family.rest(config, model);
  return model;
}

}  // namespace orrery
