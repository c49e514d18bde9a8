#pragma once

#include <set>
#include <string>
#include <vector>

#include "sim/core/enum_words.hpp"
#include "sim/core/json_value.hpp"

namespace orrery {

/// What of a model is trained: all of it; adapters of low rank beside frozen weights (LoRA, arXiv
/// 2106.09685); the same beside weights of four bits (QLoRA, arXiv 2305.14314).
enum class Finetune { full, lora, qlora };
template <>
inline const std::vector<std::string> enum_words<Finetune>{"full", "lora", "qlora"};

/// Linear layers that get an adapter, by Megatron-Bridge's names without "linear_": products that
/// make queries, keys and values; the one behind attention; those into and out of an MLP or of
/// experts. The products into and out of a mixer with a state count as the first two.
enum class LoraTarget { qkv, proj, fc1, fc2 };
template <>
inline const std::vector<std::string> enum_words<LoraTarget>{"qkv", "proj", "fc1", "fc2"};
using LoraTargets = std::set<LoraTarget>;

/// "qkv+proj".
std::string lora_targets_text(const LoraTargets& targets);
/// Reads the same, "," as well as "+", or "all-linear". Errors: an unknown word; none.
LoraTargets read_lora_targets(const JsonValue& value);

/// Storage of the frozen weights of linear layers. Tables and norms stay in 16 bits.
enum class BaseFormat {
  bf16,  ///< 16 bits.
  fp8,   ///< 8 bits, which products in 8 bits read as they are.
  nf4,   ///< bitsandbytes' 4 bits with scales of blocks, scaled again (double quantisation).
  int4   ///< 4 bits with a scale and a zero for each 128 (GPTQ, AWQ).
};
template <>
inline const std::vector<std::string> enum_words<BaseFormat>{"bf16", "fp8", "nf4", "int4"};

/// Where a plan does not say it.
inline BaseFormat usual_base_format(Finetune method) {
  return method == Finetune::qlora ? BaseFormat::nf4 : BaseFormat::bf16;
}
/// Bytes of a weight with its scales.
double stored_bytes(BaseFormat format);
/// True if products read 16 bits that are made of the stored ones before each of them.
bool is_dequantised(BaseFormat format);

}  // namespace orrery
