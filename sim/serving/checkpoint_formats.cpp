#include "sim/serving/checkpoint_formats.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <regex>
#include <set>

#include "sim/core/nearest.hpp"
#include "sim/core/number_text.hpp"
#include "sim/model/layer_pattern.hpp"
#include "sim/model/mixer.hpp"

namespace orrery {
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
    for (const std::string& glob : globs_)
      if (has_in_order(module, glob)) return true;
    for (const std::regex& pattern : patterns_)
      if (std::regex_search(module, pattern)) return true;
    return false;
  }

 private:
  static constexpr std::size_t longest_pattern = 256;

  void add(const std::string& text) {
    if (!text.starts_with("re:"))
      return (text.find('*') == text.npos ? parts_ : globs_).push_back(text);
    const std::string pattern = text.substr(3);
    if (pattern.size() > longest_pattern) return;
    try {
      // Without backtracking: a file's pattern must not take exponential time.
      patterns_.emplace_back(pattern, std::regex::ECMAScript | std::regex_constants::__polynomial);
    } catch (const std::regex_error&) {  // It excludes nothing that is known here.
    }
  }

  // True if the pieces of `glob` between its stars follow each other in `module`.
  static bool has_in_order(const std::string& module, const std::string& glob) {
    std::size_t at = 0, end = 0;
    for (std::size_t begin = 0; begin <= glob.size(); begin = end + 1) {
      end = std::min(glob.find('*', begin), glob.size());
      at = module.find(glob.substr(begin, end - begin), at);
      if (at == module.npos) return false;
      at += end - begin;
    }
    return true;
  }

  std::vector<std::string> parts_, globs_;
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
  json.fail(
      "quantises in a way that is not known here: " + shown_text(way),
      "say the nearest format: --weights fp8; orrery import: remove it, --set quantization=fp8");
}

Dtype integers(const JsonValue& json, std::int64_t bits, std::int64_t group) {
  if (bits == 8) return Dtype::int8;
  if (bits == 4) return group == 32 ? Dtype::int4_g32 : Dtype::int4;
  refuse_way(json, std::to_string(bits) + " bits");
}

// Of a group of config_groups: "weights" of what it targets, and whether the other operand is
// quantised as well.
Dtype group_format(const JsonValue& config, const JsonValue& group) {
  const auto weights = group.is_object() ? group.find("weights") : std::nullopt;
  if (!weights || !weights->is_object()) refuse_way(config, "config_groups without weights");
  const std::int64_t bits = whole_or(*weights, "num_bits", 0);
  if (text_or(*weights, "type") != "float")
    return integers(config, bits, whole_or(*weights, "group_size", 128));
  if (bits == 8) return text_or(*weights, "strategy") == "block" ? Dtype::fp8_block : Dtype::fp8;
  if (bits != 4) refuse_way(config, std::to_string(bits) + " bits");
  if (whole_or(*weights, "group_size", 16) == 32) return Dtype::mxfp4;
  const auto other = group.find("input_activations");
  return other && other->is_object() ? Dtype::nvfp4 : Dtype::nvfp4a16;
}

// The first group of llm-compressor's.
Dtype compressed_format(const JsonValue& config) {
  const auto groups = config.find("config_groups");
  if (!groups || !groups->is_object() || groups->keys().empty())
    refuse_way(config, "compressed-tensors without config_groups");
  return group_format(config, groups->at(groups->keys().front()));
}

Dtype modelopt_format(const JsonValue& config) {
  const std::string way = text_or(config, "quant_algo");
  if (way == "fp8") return Dtype::fp8;
  if (way.starts_with("fp8_pb") || way == "fp8_block_scales") return Dtype::fp8_block;
  if (way == "nvfp4") return Dtype::nvfp4;
  if (way == "w4a16_nvfp4") return Dtype::nvfp4a16;
  if (way.starts_with("w4a16")) return Dtype::int4;
  if (way.starts_with("w8a16")) return Dtype::int8;
  refuse_way(config, way);
}

Dtype quantised_format(const JsonValue& config) {
  const std::string way = text_or(config, "quant_method");
  if (way.empty() && !config.has("quant_algo") && config.has("kv_cache_quant_algo"))
    return Dtype::bf16;  // Keys and values alone are quantised.
  if (way == "fp8") return config.has("weight_block_size") ? Dtype::fp8_block : Dtype::fp8;
  if (way == "fbgemm_fp8") return Dtype::fp8;
  if (way == "compressed-tensors") return compressed_format(config);
  if (way.starts_with("modelopt") || (way.empty() && config.has("quant_algo")))
    return modelopt_format(config);
  if (way == "mxfp4") return Dtype::mxfp4;
  if (way == "mxfp8") return Dtype::mxfp8;
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

// Where a module's weights count in a deployment.
Dtype CheckpointFormats::*part_of(const std::string& module) {
  if (module.find("shared_expert") != module.npos) return &CheckpointFormats::weights;
  if (module.find(".experts") != module.npos) return &CheckpointFormats::experts;
  if (module.find("attn") != module.npos || module.find(".mixer.") != module.npos)
    return &CheckpointFormats::attention;
  return module.find(".mlp") != module.npos ? &CheckpointFormats::weights : nullptr;
}

// The layer that "model.layers.12.mlp.down_proj" names.
std::optional<std::int64_t> layer_of(const std::string& module) {
  const std::string mark = "layers.";
  const std::size_t at = module.find(mark);
  if (at == module.npos) return std::nullopt;
  const std::size_t begin = at + mark.size();
  const std::size_t end = std::min(module.find('.', begin), module.size());
  if (begin == end || end - begin > 6 || module.find_first_not_of("0123456789", begin) < end)
    return std::nullopt;
  return std::stoll(module.substr(begin, end - begin));
}

// ModelOpt's MIXED_PRECISION names each quantised module with its format. A part has the format of
// most of its modules; what no module is named of has 16 bits, as have MLPs of layers at both ends
// of which none is named.
CheckpointFormats mixed_formats(const Model& model, const JsonValue& layers) {
  using Part = Dtype CheckpointFormats::*;
  const Part parts[] = {&CheckpointFormats::weights, &CheckpointFormats::attention,
                        &CheckpointFormats::experts};
  std::vector<std::map<Dtype, int>> found(std::size(parts));
  std::set<std::int64_t> named;  // Layers whose MLPs are.
  for (const std::string& module : layers.keys()) {
    if (module.starts_with("mtp") || module.find("visual") != module.npos) continue;
    const Part part = part_of(module);
    const JsonValue one = layers.at(module);
    if (!one.is_object())
      one.fail("is no format of a module", "write an object, as {\"quant_algo\": \"FP8\"}");
    if (!part || text_or(one, "quant_algo") == "unquantized") continue;
    if (part == &CheckpointFormats::weights)
      if (const auto layer = layer_of(module)) named.insert(*layer);
    ++found[static_cast<std::size_t>(std::find(parts, std::end(parts), part) - parts)]
           [modelopt_format(one)];
  }
  CheckpointFormats formats;
  for (std::size_t i = 0; i < std::size(parts); ++i)
    if (!found[i].empty())
      formats.*parts[i] =
          std::max_element(found[i].begin(), found[i].end(), [](const auto& a, const auto& b) {
            return a.second < b.second;
          })->first;
  const bool shares = model.experts && model.experts->shared_ffn > 0;
  if (model.experts && !shares) formats.weights = formats.attention;
  if (model.experts) return formats;
  formats.experts = Dtype::bf16;
  std::int64_t& ends = formats.ends_16bit;
  while (!named.empty() && 2 * ends < model.layers && !named.contains(ends) &&
         !named.contains(model.layers - 1 - ends))
    ++ends;
  return formats;
}

// The modules of MIXED_PRECISION, of which config.json may name only groups.
std::optional<JsonValue> mixed_layers(const JsonValue& config) {
  if (text_or(config, "quant_algo") != "mixed_precision") return std::nullopt;
  const auto layers = config.find("quantized_layers");
  if (!layers || !layers->is_object() || layers->keys().empty())
    config.fail("has the quant_algo MIXED_PRECISION without quantized_layers",
                "say the formats: --weights, --attention and --experts; orrery import: add the "
                "modules of hf_quant_config.json, or --set quantization=fp8");
  return layers;
}

std::optional<Dtype> cache_format(const JsonValue& config) {
  const std::string algorithm = text_or(config, "kv_cache_quant_algo");
  if (algorithm == "fp8") return Dtype::fp8;
  if (algorithm == "nvfp4") return Dtype::nvfp4;
  const auto scheme = config.find("kv_cache_scheme");
  const bool is_fp8 = scheme && scheme->is_object() && whole_or(*scheme, "num_bits", 0) == 8 &&
                      text_or(*scheme, "type") == "float";
  return is_fp8 ? std::optional{Dtype::fp8} : std::nullopt;
}

// What hf_quant_config.json says. Errors (bad_input): it says nothing.
JsonValue modelopt_config(const JsonValue& file) {
  const auto config = file.is_object() ? file.find("quantization") : std::nullopt;
  if (!config || !config->is_object())
    file.fail("is no hf_quant_config.json: it has no object \"quantization\"",
              "give the file as ModelOpt wrote it, or leave it out");
  return *config;
}

std::optional<JsonValue> quantization_of(const Model& model) {
  if (!model.document) return std::nullopt;
  if (const auto own = model.document->find("quantization_config")) return own;
  const auto text = model.document->find("text_config");
  return text && text->is_object() ? text->find("quantization_config") : std::nullopt;
}

}  // namespace

std::optional<CheckpointFormats> formats_of_files(const Model& model,
                                                  const std::optional<JsonValue>& beside) {
  std::optional<JsonValue> config = quantization_of(model);
  const std::optional<JsonValue> hf_quant_config =
      beside || !model.document ? beside : model.document->find("hf_quant_config");
  const auto of_modelopt =
      hf_quant_config ? std::optional{modelopt_config(*hf_quant_config)} : std::nullopt;
  if (!config) config = of_modelopt;
  if (!config || !config->is_object()) return std::nullopt;
  Exclusions excluded;
  for (const char* key : {"ignore", "modules_to_not_convert", "exclude_modules"})
    if (const auto list = config->find(key)) excluded.add(*list);
  const auto mixed = mixed_layers(*config);
  CheckpointFormats formats = mixed
                                  ? mixed_formats(model, *mixed)
                                  : formats_by_modules(model, quantised_format(*config), excluded);
  formats.kv = cache_format(*config);
  if (!formats.kv && of_modelopt) formats.kv = cache_format(*of_modelopt);
  // DeepSeek-V4's experts are apart from its quantization_config: values in fp4, a scale for 32.
  if (model.experts && model.document && text_or(*model.document, "expert_dtype") == "fp4")
    formats.experts = Dtype::mxfp4;
  formats.said_by = "quantization_config";
  return formats;
}

Dtype published_states(const Model& model) {
  if (model.pattern)
    for (const Model& shape : model.pattern->shapes)
      if (const auto work = shape.mixer ? shape.mixer->work(model.hidden, 1) : std::nullopt)
        if (work->scan.kind == ScanKind::channel_delta_rule) return Dtype::fp32;
  if (!model.document) return Dtype::bf16;
  const auto text = model.document->find("text_config");
  for (const char* key : {"mamba_ssm_dtype", "mamba_ssm_cache_dtype"})
    if (text_or(*model.document, key) == "float32" ||
        (text && text->is_object() && text_or(*text, key) == "float32"))
      return Dtype::fp32;
  return Dtype::bf16;
}

CheckpointFormats published_formats(const Model& model) {
  return formats_of_files(model).value_or(CheckpointFormats{});
}

}  // namespace orrery
