#include "sim/formats/servers/checkpoint.hpp"

#include <algorithm>
#include <array>
#include <regex>
#include <string_view>

#include "sim/core/nearest.hpp"
#include "sim/core/number_text.hpp"

namespace orrery {
namespace {

struct Word {
  std::string_view text;
  Dtype format;
};

// Words in publishers' names of checkpoints, the longer ones first: RedHatAI (FP8-block,
// FP8-dynamic, w4a16), nvidia (FP4, NVFP4, FP8), Qwen (AWQ, GPTQ-Int4), and others.
constexpr std::array<Word, 20> words{{{"gptq-int4", Dtype::int4},
                                      {"gptq-int8", Dtype::int8},
                                      {"fp8-block", Dtype::fp8_block},
                                      {"fp8-dynamic", Dtype::fp8},
                                      {"fp8-kv", Dtype::fp8},
                                      {"quantized.w4a16", Dtype::int4},
                                      {"quantized.w8a16", Dtype::int8},
                                      {"nvfp4", Dtype::nvfp4},
                                      {"mxfp4", Dtype::mxfp4},
                                      {"w4a16-g32", Dtype::int4_g32},
                                      {"w4a16", Dtype::int4},
                                      {"w8a16", Dtype::int8},
                                      {"awq", Dtype::int4},
                                      {"gptq", Dtype::int4},
                                      {"bnb-4bit", Dtype::nf4_dq},
                                      {"int4", Dtype::int4},
                                      {"int8", Dtype::int8},
                                      {"bf16", Dtype::bf16},
                                      {"fp8", Dtype::fp8},
                                      {"fp4", Dtype::nvfp4}}};

}  // namespace

CheckpointName read_checkpoint_name(const std::string& name) {
  CheckpointName read{name, std::nullopt};
  while (read.model.ends_with('/')) read.model.pop_back();
  const std::size_t slash = read.model.rfind('/');
  const std::size_t begin = slash == read.model.npos ? 0 : slash + 1;
  for (const Word& word : words) {
    const std::string low = lower_case(read.model);
    const std::size_t at = low.find("-" + std::string{word.text}, begin);
    const std::size_t end = at == low.npos ? at : at + 1 + word.text.size();
    if (end == low.npos || (end < low.size() && low[end] != '-')) continue;
    read.model.erase(at, end - at);
    read.weights = word.format;
    // Qwen's own are scaled by blocks of 128 x 128 (their model cards: fine-grained fp8).
    if (word.text == "fp8" && low.starts_with("qwen/")) read.weights = Dtype::fp8_block;
    break;
  }
  return read;
}

// quantization_config of each one's config.json: block-wise fp8 of DeepSeek-V3, Kimi-K2 and
// MiniMax-M2, mxfp4 of the experts alone in gpt-oss.
CheckpointFormats published_formats(const std::string& model) {
  using enum Dtype;
  if (model == "deepseek-v3" || model == "kimi-k2" || model.starts_with("minimax-m2"))
    return {fp8_block, fp8_block, fp8_block};
  if (model.starts_with("gpt-oss-")) return {bf16, bf16, mxfp4};
  return {};
}

namespace {

// Checkpoints whose names do not say what their config.json does (quantization_config).
struct KnownCheckpoint {
  std::string_view name;
  CheckpointFormats formats;
};
const std::vector<KnownCheckpoint>& known_checkpoints() {
  using enum Dtype;
  // Experts alone, in groups of 32 with a 16-bit scale (compressed-tensors, pack-quantized).
  static const CheckpointFormats kimi{bf16, bf16, int4_g32, 0, {}, 262144};
  // modules_to_not_convert: all of attention, and the first and the last layer (fbgemm_fp8).
  static const CheckpointFormats llama{fp8, bf16, fp8, 1};
  static const std::vector<KnownCheckpoint> all{{"moonshotai/kimi-k2-thinking", kimi},
                                                {"moonshotai/kimi-k2.5", kimi},
                                                {"meta-llama/llama-3.1-405b-fp8", llama},
                                                {"meta-llama/llama-3.1-405b-instruct-fp8", llama}};
  return all;
}

// "meta-llama/Meta-Llama-3.1-405B-FP8" was renamed without its second "Meta-".
std::string hub_key(const std::string& name) {
  std::string key = lower_case(name);
  while (key.ends_with('/')) key.pop_back();
  const std::string former = "meta-llama/meta-";
  return key.starts_with(former) ? "meta-llama/" + key.substr(former.size()) : key;
}

}  // namespace

CheckpointFormats formats_of_name(const std::string& name, const std::string& catalog_name) {
  const std::string key = hub_key(name);
  const auto known = std::ranges::find(known_checkpoints(), key, &KnownCheckpoint::name);
  if (known != known_checkpoints().end()) {
    CheckpointFormats formats = known->formats;
    formats.said_by = "its publisher's config.json";
    return formats;
  }
  const CheckpointName words = read_checkpoint_name(name);
  CheckpointFormats formats = published_formats(catalog_name);
  if (words.weights) {
    formats.weights = formats.attention = formats.experts = *words.weights;
    formats.said_by = "its name";
  } else if (formats.is_quantised()) {
    formats.said_by = "its publisher's config.json";
  }
  // hf_quant_config.json of NVIDIA's checkpoints in FP8 and NVFP4 has kv_cache_quant_algo FP8.
  if (key.starts_with("nvidia/") &&
      (words.weights == Dtype::fp8 || words.weights == Dtype::nvfp4)) {
    formats.kv = Dtype::fp8;
    formats.said_by = "its name, and hf_quant_config.json of NVIDIA's checkpoints";
  }
  return formats;
}

namespace {

// A list of modules that stay in 16 bits: names, parts of names, globs, or regular expressions
// behind "re:" (compressed-tensors).
class Exclusions {
 public:
  void add(const JsonValue& list) {
    if (!list.is_array()) return;
    for (const JsonValue& one : list.elements())
      if (one.is_string()) add(one.text());
  }

  bool has(const std::string& module) const {
    for (const std::string& part : parts_) {
      const std::size_t at = module.find(part), end = at + part.size();
      if (at != module.npos && (end == module.size() || module[end] == '.')) return true;
    }
    for (const std::regex& pattern : patterns_)
      if (std::regex_search(module, pattern)) return true;
    return false;
  }

 private:
  static constexpr std::size_t longest_pattern = 256;

  void add(const std::string& text) {
    const bool is_pattern = text.starts_with("re:"), is_glob = text.find('*') != text.npos;
    if (!is_pattern && !is_glob) return parts_.push_back(text);
    std::string pattern = text.substr(is_pattern ? 3 : 0);
    if (pattern.size() > longest_pattern) return;
    if (!is_pattern) pattern = std::regex_replace(pattern, std::regex{R"(\.|\*)"}, "[$&]");
    if (!is_pattern) pattern = std::regex_replace(pattern, std::regex{R"(\[\*\])"}, ".*");
    try {
      // Without backtracking: a file's pattern must not take exponential time.
      patterns_.emplace_back(pattern, std::regex::ECMAScript | std::regex_constants::__polynomial);
    } catch (const std::regex_error&) {  // It excludes nothing that is known here.
    }
  }

  std::vector<std::string> parts_;
  std::vector<std::regex> patterns_;
};

std::int64_t whole_or(const JsonValue& json, const char* key, std::int64_t absent) {
  const auto value = json.find(key);
  return value && value->is_number() ? static_cast<std::int64_t>(value->number(-1e9, 1e9)) : absent;
}
std::string text_or(const JsonValue& json, const char* key) {
  const auto value = json.find(key);
  return value && value->is_string() ? lower_case(value->text()) : "";
}
bool says(const JsonValue& json, const char* key) {
  const auto value = json.find(key);
  return value && value->is_boolean() && value->boolean();
}

[[noreturn]] void refuse_way(const JsonValue& json, const std::string& way) {
  json.fail("quantises in a way that is not known here: " + shown_text(way),
            "say the nearest format: --set quantization=fp8");
}

Dtype integers(const JsonValue& json, std::int64_t bits, std::int64_t group) {
  if (bits == 8) return Dtype::int8;
  if (bits == 4) return group == 32 ? Dtype::int4_g32 : Dtype::int4;
  refuse_way(json, std::to_string(bits) + " bits");
}

// The first group of llm-compressor's: "weights" of what it targets.
Dtype compressed_format(const JsonValue& config) {
  const auto groups = config.find("config_groups");
  if (!groups || !groups->is_object() || groups->keys().empty())
    refuse_way(config, "compressed-tensors without config_groups");
  const JsonValue group = groups->at(groups->keys().front());
  const auto weights = group.is_object() ? group.find("weights") : std::nullopt;
  if (!weights || !weights->is_object()) refuse_way(config, "config_groups without weights");
  const std::int64_t bits = whole_or(*weights, "num_bits", 0);
  if (text_or(*weights, "type") != "float")
    return integers(config, bits, whole_or(*weights, "group_size", 128));
  if (bits == 8) return text_or(*weights, "strategy") == "block" ? Dtype::fp8_block : Dtype::fp8;
  if (bits == 4) return whole_or(*weights, "group_size", 16) == 32 ? Dtype::mxfp4 : Dtype::nvfp4;
  refuse_way(config, std::to_string(bits) + " bits");
}

Dtype modelopt_format(const JsonValue& config) {
  const std::string way = text_or(config, "quant_algo");
  if (way == "fp8") return Dtype::fp8;
  if (way.starts_with("fp8_pb") || way == "fp8_block_scales") return Dtype::fp8_block;
  if (way == "nvfp4") return Dtype::nvfp4;
  if (way.starts_with("w4a16")) return Dtype::int4;
  if (way.starts_with("w8a16")) return Dtype::int8;
  refuse_way(config, way);
}

Dtype quantised_format(const JsonValue& config) {
  const std::string way = text_or(config, "quant_method");
  if (way == "fp8") return config.has("weight_block_size") ? Dtype::fp8_block : Dtype::fp8;
  if (way == "fbgemm_fp8") return Dtype::fp8;
  if (way == "compressed-tensors") return compressed_format(config);
  if (way.starts_with("modelopt") || (way.empty() && config.has("quant_algo")))
    return modelopt_format(config);
  if (way == "mxfp4") return Dtype::mxfp4;
  if (way == "gptq" || way == "awq")
    return integers(config, whole_or(config, "bits", 4), whole_or(config, "group_size", 128));
  if (way == "bitsandbytes" && says(config, "load_in_4bit"))
    return says(config, "bnb_4bit_use_double_quant") ? Dtype::nf4_dq : Dtype::nf4;
  if (way == "bitsandbytes") return Dtype::int8;
  refuse_way(config, way);
}

// Formats by modules: those of `format`, less what stays in 16 bits.
CheckpointFormats formats_by_modules(const Model& model, Dtype format, const Exclusions& out) {
  const auto excluded = [&](std::int64_t layer, const char* module) {
    return out.has("model.layers." + std::to_string(layer) + module);
  };
  const auto all = [&](const char* module) {
    for (std::int64_t layer = 0; layer < model.layers; ++layer)
      if (!excluded(layer, module)) return false;
    return true;
  };
  CheckpointFormats formats;
  constexpr const char* of_attention = ".self_attn.o_proj";
  constexpr const char* of_mlp = ".mlp.down_proj";
  if (!all(of_attention)) formats.attention = format;
  const bool shares = model.experts && model.experts->shared_ffn > 0;
  const char* plain = shares ? ".mlp.shared_experts.down_proj" : of_mlp;
  if (!all(plain)) formats.weights = format;
  if (model.experts && !all(".mlp.experts.0.down_proj")) formats.experts = format;
  // Without shared experts, attention's are the layers that `weights` is about.
  if (model.experts && !shares) formats.weights = formats.attention;
  if (model.experts || formats.weights != format) return formats;
  std::int64_t& ends = formats.ends_16bit;
  while (2 * ends < model.layers && excluded(ends, of_mlp) &&
         excluded(model.layers - 1 - ends, of_mlp))
    ++ends;
  return formats;
}

bool is_fp8_cache(const JsonValue& config) {
  if (text_or(config, "kv_cache_quant_algo") == "fp8") return true;
  const auto scheme = config.find("kv_cache_scheme");
  return scheme && scheme->is_object() && whole_or(*scheme, "num_bits", 0) == 8 &&
         text_or(*scheme, "type") == "float";
}

std::optional<JsonValue> quantization_of(const Model& model) {
  if (!model.document) return std::nullopt;
  if (const auto own = model.document->find("quantization_config")) return own;
  const auto text = model.document->find("text_config");
  return text && text->is_object() ? text->find("quantization_config") : std::nullopt;
}

}  // namespace

std::optional<CheckpointFormats> formats_of_files(const Model& model,
                                                  const std::optional<JsonValue>& hf_quant_config) {
  std::optional<JsonValue> config = quantization_of(model);
  if (!config && hf_quant_config && hf_quant_config->is_object())
    config = hf_quant_config->find("quantization");
  if (!config || !config->is_object()) return std::nullopt;
  Exclusions excluded;
  for (const char* key : {"ignore", "modules_to_not_convert", "exclude_modules"})
    if (const auto list = config->find(key)) excluded.add(*list);
  CheckpointFormats formats = formats_by_modules(model, quantised_format(*config), excluded);
  const auto beside =
      hf_quant_config ? hf_quant_config->find("quantization") : std::optional<JsonValue>{};
  if (is_fp8_cache(*config) || (beside && beside->is_object() && is_fp8_cache(*beside)))
    formats.kv = Dtype::fp8;
  formats.said_by = "quantization_config";
  return formats;
}

const std::vector<ServedFormat>& served_formats() {
  using enum Dtype;
  static const std::vector<ServedFormat> all = {
      {bf16, "-BF16"},
      {fp8,
       "-FP8-dynamic",
       {"fp8", "modelopt", "modelopt_fp8", "fbgemm_fp8", "ptpc_fp8", "w8a8_fp8", "tpu_fp8"},
       true,
       {fp8_block}},
      {fp8_block, "-FP8-block"},
      {nvfp4, "-NVFP4", {"modelopt_fp4", "nvfp4", "petit_nvfp4"}},
      {mxfp4, "-MXFP4", {"mxfp4"}},
      {int8, "-GPTQ-Int8", {"experts_int8"}},
      {int4,
       "-AWQ",
       {"awq", "awq_marlin", "gptq", "gptq_marlin", "marlin", "moe_wna16"},
       false,
       {int8, int4_g32}},
      {int4_g32, "-W4A16-G32"},
      {nf4, "-bnb-4bit", {"bitsandbytes"}, true},
      {nf4_dq, "-bnb-4bit", {"bitsandbytes"}, true}};
  return all;
}

}  // namespace orrery
