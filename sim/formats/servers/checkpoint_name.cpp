#include "sim/formats/servers/checkpoint_name.hpp"

#include <array>
#include <cctype>
#include <string_view>

namespace orrery {
namespace {

struct Word {
  std::string_view text;
  WeightFormat format;
};

// As publishers name their checkpoints, the longer words first: RedHatAI (FP8-block, FP8-dynamic,
// w4a16), nvidia (FP4, NVFP4, FP8), Qwen (AWQ, GPTQ-Int4), and others.
constexpr std::array<Word, 18> words{{{"gptq-int4", WeightFormat::int4},
                                      {"gptq-int8", WeightFormat::int8},
                                      {"fp8-block", WeightFormat::fp8_block},
                                      {"fp8-dynamic", WeightFormat::fp8},
                                      {"fp8-kv", WeightFormat::fp8},
                                      {"quantized.w4a16", WeightFormat::int4},
                                      {"quantized.w8a16", WeightFormat::int8},
                                      {"nvfp4", WeightFormat::nvfp4},
                                      {"mxfp4", WeightFormat::mxfp4},
                                      {"w4a16", WeightFormat::int4},
                                      {"w8a16", WeightFormat::int8},
                                      {"awq", WeightFormat::int4},
                                      {"gptq", WeightFormat::int4},
                                      {"int4", WeightFormat::int4},
                                      {"int8", WeightFormat::int8},
                                      {"bf16", WeightFormat::bf16},
                                      {"fp8", WeightFormat::fp8},
                                      {"fp4", WeightFormat::nvfp4}}};

std::string small(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

CheckpointName read_checkpoint_name(const std::string& name) {
  CheckpointName read{name, std::nullopt};
  while (read.model.ends_with('/')) read.model.pop_back();
  const std::size_t slash = read.model.rfind('/');
  const std::size_t begin = slash == read.model.npos ? 0 : slash + 1;
  for (const Word& word : words) {
    const std::string low = small(read.model);
    const std::size_t at = low.find("-" + std::string{word.text}, begin);
    const std::size_t end = at == low.npos ? at : at + 1 + word.text.size();
    if (end == low.npos || (end < low.size() && low[end] != '-')) continue;
    read.model.erase(at, end - at);
    read.weights = word.format;
    // Qwen's own are scaled by blocks of 128 x 128 (their model cards: fine-grained fp8).
    if (word.text == "fp8" && low.starts_with("qwen/")) read.weights = WeightFormat::fp8_block;
    break;
  }
  return read;
}

// quantization_config of each one's config.json: block-wise fp8 of DeepSeek-V3, Kimi-K2 and
// MiniMax-M2, mxfp4 of the experts alone in gpt-oss.
PublishedFormats published_formats(const std::string& model) {
  if (model == "deepseek-v3" || model == "kimi-k2" || model.starts_with("minimax-m2"))
    return {WeightFormat::fp8_block, WeightFormat::fp8_block};
  if (model.starts_with("gpt-oss-")) return {WeightFormat::bf16, WeightFormat::mxfp4};
  return {};
}

const std::string& checkpoint_suffix(WeightFormat format) {
  static const std::array<std::string, 8> suffixes{"-BF16",  "",       "-FP8-dynamic", "-FP8-block",
                                                   "-NVFP4", "-MXFP4", "-GPTQ-Int8",   "-AWQ"};
  return suffixes[static_cast<std::size_t>(format)];
}

}  // namespace orrery
