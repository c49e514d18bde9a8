#include "sim/formats/megatron/hybrid_pattern.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/core/json_value.hpp"
#include "sim/core/number_text.hpp"
#include "sim/formats/megatron/layer_split.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t most_letters = 20'000;

struct Letter {
  char letter;
  const char* kind;  ///< Name of its mixer or feed-forward part in the model.
  bool is_mixer;
};
constexpr Letter letters[] = {{'M', "mamba2", true}, {'G', "delta", true},  {'*', "full", true},
                              {'+', "latent", true}, {'-', "dense", false}, {'E', "moe", false}};

const Letter* find_letter(char letter) {
  const auto* found = std::find_if(std::begin(letters), std::end(letters),
                                   [&](const Letter& one) { return one.letter == letter; });
  return found == std::end(letters) ? nullptr : found;
}

// "mamba2+none" of M, "none+moe" of E, "delta+moe" of GE.
std::string name_of(const std::string& layer) {
  const Letter* mixer = find_letter(layer.front());
  const Letter* ffn = find_letter(layer.back());
  return std::string{mixer->is_mixer ? mixer->kind : "none"} + "+" +
         (ffn->is_mixer ? "none" : ffn->kind);
}

std::vector<std::string> each_letter(const std::string& written) {
  std::vector<std::string> layers;
  for (const char letter : written) layers.emplace_back(1, letter);
  return layers;
}

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts{""};
  for (const char c : text) {
    if (c == by)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

// Layers behind each other as runs: M, E, M, E, M, E, * are three of [M, E] and one of [*].
Json runs_of(const std::vector<std::string>& layers) {
  Json runs = Json::array();
  Json single = Json::array();  // Layers that repeat nothing.
  const auto close = [&] {
    if (!single.empty()) runs.push_back({1, single});
    single = Json::array();
  };
  const auto repeats = [&](std::size_t at, std::size_t length) {
    std::size_t count = 1;
    while (at + (count + 1) * length <= layers.size() &&
           std::equal(layers.begin() + at, layers.begin() + at + length,
                      layers.begin() + at + count * length))
      ++count;
    return count;
  };
  constexpr std::size_t longest = 12;
  for (std::size_t at = 0; at < layers.size();) {
    std::size_t unit = 0, times = 1;
    for (std::size_t length = 1; length <= longest; ++length) {
      const std::size_t count = repeats(at, length);
      if (count > 2 && count * length > times * unit) unit = length, times = count;
    }
    if (unit == 0) {
      single.push_back(name_of(layers[at++]));
      continue;
    }
    close();
    Json names = Json::array();
    for (std::size_t i = 0; i < unit; ++i) names.push_back(name_of(layers[at + i]));
    runs.push_back({times, names});
    at += unit * times;
  }
  close();
  return runs;
}

// Layers of pretrain_gpt.py, which have a mixer and a feed-forward part each.
std::optional<HybridPattern> linear_attention_pattern(const MegatronArguments& a) {
  const char* key = a.has("experimental_attention_variant") ? "experimental_attention_variant"
                                                            : "linear_attention_type";
  if (!a.has(key)) return std::nullopt;
  const std::string variant = a.find(key)->text();
  if (variant != "gated_delta_net" && variant != "gdn")
    a.fail(key, "is " + shown_text(variant) + ", whose training has no prices",
           "import a model with gated_delta_net or with usual attention");
  const std::int64_t layers = a.required("num_layers");
  if (layers < 1 || layers > static_cast<std::int64_t>(most_letters))
    a.fail("num_layers", "is " + grouped(layers),
           "write 1 to " + grouped(static_cast<std::int64_t>(most_letters)));
  const auto count = static_cast<std::size_t>(layers);
  if (!a.has("linear_attention_freq"))
    fail_input(a.place(),
               "has " + a.spelled(key) + " without " + a.spelled("linear_attention_freq"),
               a.how_to_add("linear_attention_freq"));
  const std::string freq = a.find("linear_attention_freq")->text();
  const auto is_delta = linear_layers(freq, count);
  if (!is_delta)
    a.fail("linear_attention_freq", "is " + shown_text(freq),
           "write a number, or \"([1]*3+[0]*1)*12\", in all as many as layers");
  std::string has_experts(count, '0');
  if (a.number("num_experts", 0) > 0) {
    const std::string given = a.word("moe_layer_freq", "1");
    const auto listed = expert_layers(given, count);
    if (!listed)
      a.fail("moe_layer_freq", "is " + shown_text(given),
             "write a number, or \"[0]*3+[1]*58\", in all as many as layers");
    has_experts = *listed;
  }
  HybridPattern pattern;
  pattern.cuts_itself = false;
  pattern.chunks = {static_cast<int>(count)};
  const char attention = a.flag("multi_latent_attention") ? '+' : '*';
  for (std::size_t l = 0; l < count; ++l)
    pattern.layers.push_back(
        {(*is_delta)[l] == '1' ? 'G' : attention, has_experts[l] == '1' ? 'E' : '-'});
  // A prediction module has the layer that the model ends with.
  pattern.modules = a.number("mtp_num_layers", 0);
  if (pattern.modules > 0) pattern.prediction = {pattern.layers.back()};
  return pattern;
}

}  // namespace

std::optional<HybridPattern> hybrid_pattern(const MegatronArguments& a) {
  const char* key =
      a.has("hybrid_layer_pattern") ? "hybrid_layer_pattern" : "hybrid_override_pattern";
  if (!a.has(key)) {
    for (const char* ratio : {"hybrid_attention_ratio", "hybrid_mlp_ratio"})
      if (const auto* given = a.find(ratio);
          given && given->text() != "0.0" && given->text() != "0")
        a.fail(ratio, "is " + shown_text(given->text()) + " instead of a pattern of layers",
               "write the layers with " + a.spelled("hybrid_layer_pattern"));
    if (a.flag("is_hybrid_model"))
      a.fail("is_hybrid_model", "is given without a pattern of layers",
             "write the layers with " + a.spelled("hybrid_layer_pattern"));
    return linear_attention_pattern(a);
  }
  if (a.has("hybrid_layer_pattern") && a.has("hybrid_override_pattern"))
    a.fail("hybrid_override_pattern",
           "is given together with --hybrid-layer-pattern, its newer name", "keep one of them");
  // The pattern implies or overrides these arguments, so they count as read.
  for (const char* implied : {"is_hybrid_model", "num_layers", "mtp_num_layers",
                              "multi_latent_attention", "experimental_attention_variant"})
    a.find(implied);
  const std::string text = a.find(key)->text();
  const auto fail = [&](const std::string& problem, const std::string& remedy) {
    a.fail(key, problem, remedy);
  };
  if (text.empty()) fail("is empty", "write a letter for each layer");
  if (text.find('*') != text.npos && text.find('+') != text.npos)
    fail("has both attention (*) and latent attention (+), which Megatron-LM refuses",
         "keep one of them");
  if (text.size() > most_letters)
    fail("has " + grouped(static_cast<std::int64_t>(text.size())) + " letters",
         "write " + grouped(static_cast<std::int64_t>(most_letters)) + " at most");
  for (const char letter : text)
    if (letter == 'D')
      fail("has layers of DeepSeek's sparse attention (D), whose training has no prices",
           "write + for latent attention, which sees all tokens");
    else if (letter != '|' && letter != '/' && !find_letter(letter))
      fail("has '" + shown_text(std::string{letter}) + "', which is no layer",
           "write M (Mamba), G (gated delta net), * (attention), + (latent attention), - (MLP), E "
           "(experts), | between chunks and / before prediction modules");
  std::vector<std::string> parts = split(text, '/');
  HybridPattern pattern;
  for (const std::string& chunk : split(parts.front(), '|')) {
    if (chunk.empty()) fail("has a chunk without layers", "write layers on both sides of a |");
    for (const std::string& layer : each_letter(chunk)) pattern.layers.push_back(layer);
    pattern.chunks.push_back(static_cast<int>(chunk.size()));
  }
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].empty() || parts[i] != parts[1] || parts[i].find('|') != std::string::npos)
      fail("has prediction modules that differ or have no layers",
           "write the same layers behind each /");
    pattern.prediction = each_letter(parts[1]);
    pattern.modules = static_cast<std::int64_t>(parts.size()) - 1;
  }
  const auto count = static_cast<std::int64_t>(pattern.layers.size());
  if (a.has("num_layers") && a.number("num_layers", count) != count)
    a.fail("num_layers",
           "is " + grouped(a.number("num_layers", count)) + ", but " + a.spelled(key) + " has " +
               grouped(count) + " layers",
           "write " + grouped(count) + ", or leave it out");
  if (pattern.modules == 0 && a.number("mtp_num_layers", 0) > 0) {
    const std::string module = a.word("mtp_hybrid_override_pattern", "");
    pattern.modules = a.number("mtp_num_layers", 0);
    if (module.empty())
      a.fail("mtp_num_layers", "is given with a pattern that has no prediction modules",
             "add the layers of each behind a / of " + a.spelled(key));
    for (const char letter : module)
      if (!find_letter(letter))
        a.fail("mtp_hybrid_override_pattern", "is " + shown_text(module),
               "write the letters of " + a.spelled("hybrid_layer_pattern"));
    pattern.prediction = each_letter(module);
  }
  return pattern;
}

void add_hybrid_layers(const MegatronArguments& a, const HybridPattern& pattern,
                       std::int64_t hidden, std::int64_t ffn, Json& model) {
  std::string all;
  for (const auto* layers : {&pattern.layers, &pattern.prediction})
    for (const std::string& layer : *layers) all += layer;
  const auto has = [&](char letter) { return all.find(letter) != std::string::npos; };
  const bool gated = a.flag("swiglu") || a.flag("quick_geglu") || a.flag("geglu");
  const bool bias = a.flag("add_bias_linear", true);
  a.flag("squared_relu");  // Not gated: its time is that of other such activations.
  Json mixers = Json::object(), ffns = Json::object();
  if (has('M')) {
    // ssm/mamba_mixer.py: inner channels are twice the hidden ones unless the heads are given.
    const std::int64_t head_dim = a.number("mamba_head_dim", 64);
    const std::int64_t usual = head_dim > 0 ? 2 * hidden / head_dim : 0;
    mixers["mamba2"] = {{"kind", "mamba2"},
                        {"heads", a.number("mamba_num_heads", usual)},
                        {"head_dim", head_dim},
                        {"state", a.number("mamba_state_dim", 128)},
                        {"groups", a.number("mamba_num_groups", 8)},
                        {"conv", 4},
                        {"chunk", 128}};
  }
  if (has('G'))
    mixers["delta"] = {{"kind", "gated_delta_net"},
                       {"key_heads", a.number("linear_num_key_heads", 16)},
                       {"value_heads", a.number("linear_num_value_heads", 32)},
                       {"key_dim", a.number("linear_key_head_dim", 128)},
                       {"value_dim", a.number("linear_value_head_dim", 128)},
                       {"conv", a.number("linear_conv_kernel_dim", 4)}};
  if (has('*')) {
    const std::int64_t heads = a.required("num_attention_heads");
    const std::int64_t channels = heads > 0 ? hidden / heads : 0;
    mixers["full"] = {
        {"kind", "attention"},
        {"heads", heads},
        {"kv_heads", a.flag("group_query_attention") ? a.number("num_query_groups", 1) : heads},
        {"head_dim", a.number("kv_channels", channels)},
        {"rotary", a.word("position_embedding_type", "learned_absolute") == "rope"},
        {"output_gate", a.flag("attention_output_gate")},
        {"qk_norm", a.flag("qk_layernorm")},
        {"qkv_bias", a.flag("add_qkv_bias") || bias},
        {"out_bias", bias}};
  }
  if (has('+'))
    mixers["latent"] = {{"kind", "latent_attention"},
                        {"heads", a.required("num_attention_heads")},
                        {"q_rank", a.number("q_lora_rank", 0)},
                        {"kv_rank", a.number("kv_lora_rank", 32)},
                        {"nope_dim", a.number("qk_head_dim", 128)},
                        {"rope_dim", a.number("qk_pos_emb_head_dim", 64)},
                        {"value_dim", a.number("v_head_dim", 128)}};
  if (has('-')) ffns["dense"] = {{"width", ffn}, {"gated", gated}, {"bias", bias}};
  if (has('E'))
    ffns["moe"] = {{"experts", a.required("num_experts")},
                   {"top_k", a.number("moe_router_topk", 2)},
                   {"moe_ffn", a.number("moe_ffn_hidden_size", ffn)},
                   {"shared_expert_ffn", a.number("moe_shared_expert_intermediate_size", 0)},
                   {"shared_gate", a.flag("moe_shared_expert_gate")},
                   {"expert_groups", a.number("moe_router_num_groups", 1)},
                   {"groups_per_token", a.number("moe_router_group_topk", 1)},
                   {"correction_bias", a.flag("moe_router_enable_expert_bias")},
                   {"latent", a.number("moe_latent_size", 0)},
                   {"gated", gated},
                   {"bias", bias}};
  model["mixers"] = std::move(mixers);
  model["ffns"] = std::move(ffns);
  model["pattern"] = runs_of(pattern.layers);
  if (pattern.modules == 0) return;
  model["prediction_layers"] = pattern.modules;
  model["prediction"] = Json::array();
  for (const std::string& layer : pattern.prediction) model["prediction"].push_back(name_of(layer));
  model["prediction_repeats"] = a.flag("mtp_use_repeated_layer");
}

}  // namespace orrery
