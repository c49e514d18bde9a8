#include "sim/formats/servers/checkpoint.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "sim/core/nearest.hpp"

namespace orrery {
namespace {

struct Word {
  std::string_view text;
  Dtype format;
};

// Words in publishers' names of checkpoints, the longer ones first: RedHatAI (FP8-block,
// FP8-dynamic, w4a16), nvidia (FP4, NVFP4, FP8), Qwen (AWQ, GPTQ-Int4), and others.
constexpr std::array<Word, 24> words{{{"gptq-int4", Dtype::int4},
                                      {"gptq-int8", Dtype::int8},
                                      {"fp8-block", Dtype::fp8_block},
                                      {"fp8-dynamic", Dtype::fp8},
                                      {"fp8-kv", Dtype::fp8},
                                      {"quantized.w4a16", Dtype::int4},
                                      {"quantized.w8a16", Dtype::int8},
                                      {"quantized.w8a8", Dtype::int8},
                                      {"nvfp4a16", Dtype::nvfp4a16},
                                      {"nvfp4", Dtype::nvfp4},
                                      {"mxfp4", Dtype::mxfp4},
                                      {"mxfp8", Dtype::mxfp8},
                                      {"w4a16-g32", Dtype::int4_g32},
                                      {"w4a16", Dtype::int4},
                                      {"w8a16", Dtype::int8},
                                      {"w8a8", Dtype::int8},
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
    // Qwen's own are scaled by blocks of 128 x 128 (their model cards: fine-grained fp8), and so
    // are GLM-5's (zai-org/GLM-5.1-FP8: sglang-jax pull request 1111).
    if (word.text == "fp8" && (low.starts_with("qwen/") || low.starts_with("zai-org/glm-5")))
      read.weights = Dtype::fp8_block;
    break;
  }
  return read;
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
  // hf_quant_config.json: MIXED_PRECISION, MLPs or experts in W4A16_NVFP4, attention in FP8.
  static const CheckpointFormats dense{nvfp4a16, fp8, bf16, 0, fp8},
      experts{nvfp4a16, fp8, nvfp4a16, 0, fp8};
  static const std::vector<KnownCheckpoint> all{
      {"moonshotai/kimi-k2-thinking", kimi},     {"nvidia/qwen3.6-27b-nvfp4", dense},
      {"nvidia/qwen3.6-35b-a3b-nvfp4", experts}, {"moonshotai/kimi-k2.5", kimi},
      {"meta-llama/llama-3.1-405b-fp8", llama},  {"meta-llama/llama-3.1-405b-instruct-fp8", llama}};
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

CheckpointFormats formats_of_name(const std::string& name, const Model* model) {
  const std::string key = hub_key(name);
  const auto known = std::ranges::find(known_checkpoints(), key, &KnownCheckpoint::name);
  if (known != known_checkpoints().end()) {
    CheckpointFormats formats = known->formats;
    formats.said_by = "its publisher's config.json";
    return formats;
  }
  const CheckpointName said = read_checkpoint_name(name);
  CheckpointFormats formats = model ? published_formats(*model) : CheckpointFormats{};
  if (said.weights) {
    formats.weights = formats.attention = formats.experts = *said.weights;
    formats.said_by = "its name";
  } else if (formats.is_quantised()) {
    formats.said_by = "its publisher's config.json";
  }
  // hf_quant_config.json of NVIDIA's checkpoints in FP8 and NVFP4 has kv_cache_quant_algo FP8.
  if (key.starts_with("nvidia/") && (said.weights == Dtype::fp8 || said.weights == Dtype::nvfp4)) {
    formats.kv = Dtype::fp8;
    // exclude_modules of DeepSeek-V3.1-NVFP4, DeepSeek-V3.2-NVFP4 and Kimi-K2.5-NVFP4: all products
    // of latent attention, at most its last one aside.
    if (said.weights == Dtype::nvfp4 && model && model->latent) formats.attention = Dtype::bf16;
    formats.said_by = "its name, and hf_quant_config.json of NVIDIA's checkpoints";
  }
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
      {nvfp4, "-NVFP4", {"modelopt_fp4", "nvfp4", "petit_nvfp4"}, false, {nvfp4a16}},
      {nvfp4a16, "-NVFP4A16"},
      {mxfp4, "-MXFP4", {"mxfp4"}},
      {mxfp8, "-MXFP8", {"mxfp8"}},
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
