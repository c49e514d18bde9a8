#pragma once

#include <array>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/enum_words.hpp"
#include "sim/core/units.hpp"

namespace orrery {

class JsonValue;
template <class T>
struct Notation;

/// Generations of GPUs, oldest first.
enum class Architecture { volta, ampere, ada, hopper, blackwell };
template <>
inline const std::vector<std::string> enum_words<Architecture>{"volta", "ampere", "ada", "hopper",
                                                               "blackwell"};

/// Dense peaks of the arithmetic units of a GPU; 0: it has none.
struct Peaks {
  FlopPerSecond peak_16bit = {};
  FlopPerSecond peak_fp8 = {};
  FlopPerSecond peak_fp4 = {};
  FlopPerSecond peak_tf32 = {};
  FlopPerSecond peak_fp32 = {};  ///< Vector units.
};

/// Number formats of operands, weights, optimizer states and KV caches.
enum class Dtype {
  fp16,
  bf16,
  fp8,
  mxfp8,
  nvfp4,
  tf32,
  fp32,
  fp8_block,
  mxfp4,
  int8,
  int8_block,
  int4,
  int4_g32,
  nf4,
  nf4_dq,
  nvfp4a16
};

/// One scale of `bits` for each `elements`; a zero point counts with it. 0 bits: one for a tensor
/// or a row, which is not counted.
struct ScaleBlocks {
  double bits = 0.0;
  double elements = 1.0;
};

/// All that distinguishes one format from another.
struct NumberFormat {
  std::string_view name;  ///< Its word in options and files.
  double bits;            ///< Bits of an element in memory, without its scales.
  ScaleBlocks scales = {};
  ScaleBlocks scales_of_scales = {};                ///< Quantised scales have some of their own.
  FlopPerSecond Peaks::*peak = &Peaks::peak_16bit;  ///< Peak of the units that multiply it.
  Architecture since = Architecture::volta;         ///< The first one that multiplies it.
  /// Only weights are stored in it: the kernel that multiplies them converts them to 16 bits, and
  /// the other operand has 16 bits. Else both operands are quantised.
  bool weight_only = false;
  /// weight_only: most rows that are multiplied by weights as they are stored. For more, and for
  /// experts always, another kernel writes them out in 16 bits first.
  double fused_rows = std::numeric_limits<double>::infinity();
  /// The format whose measured kernels stand for its own; unset: they were measured, or nothing
  /// was.
  std::optional<Dtype> measured_as = {};
  /// The same for attention over a KV cache, if different.
  std::optional<Dtype> cache_measured_as = {};
  /// Times that training's quantisation reads a tensor of 16 bits; 0: Software::quantise_bytes has
  /// the traffic.
  int quantise_reads = 0;
};

/// One for each format, in the order of Dtype.
inline constexpr NumberFormat number_formats[] = {
    {.name = "fp16", .bits = 16, .measured_as = Dtype::bf16},
    // Tensor cores multiply it from Ampere on, as fast as fp16 (NVIDIA A100 whitepaper, 2020).
    {.name = "bf16", .bits = 16, .since = Architecture::ampere},
    {.name = "fp8", .bits = 8, .peak = &Peaks::peak_fp8},
    // OCP Microscaling v1.0. Tensor cores scale such blocks from Blackwell on (NVIDIA Blackwell
    // architecture brief). Its products were not measured: fp8's constants hold its scales.
    {.name = "mxfp8",
     .bits = 8,
     .scales = {8, 32},
     .peak = &Peaks::peak_fp8,
     .since = Architecture::blackwell,
     .measured_as = Dtype::fp8,
     .quantise_reads = 1},
    // An fp8 scale for 16 elements (NVIDIA Blackwell NVFP4, 2025). Training reads a tensor for its
    // maximum, with and without the Hadamard transform at once, and once for each direction
    // (Transformer Engine, pytorch/csrc/quantizer.cpp, NVFP4Quantizer::quantize_impl). Decode
    // attention over a cache of it was not measured.
    {.name = "nvfp4",
     .bits = 4,
     .scales = {8, 16},
     .peak = &Peaks::peak_fp4,
     .cache_measured_as = Dtype::fp8,
     .quantise_reads = 3},
    // fp32's operands, of which tensor cores read 19 bits (NVIDIA A100 whitepaper, 2020).
    {.name = "tf32", .bits = 32, .peak = &Peaks::peak_tf32},
    {.name = "fp32", .bits = 32, .peak = &Peaks::peak_fp32},
    // A 32-bit scale for 128 x 128 weights (DeepSeek-V3).
    {.name = "fp8_block", .bits = 8, .scales = {32, 128 * 128}, .peak = &Peaks::peak_fp8},
    // OCP Microscaling v1.0.
    {.name = "mxfp4", .bits = 4, .scales = {8, 32}, .weight_only = true},
    {.name = "int8", .bits = 8, .weight_only = true},
    // Adam's moments: a float for 256 elements (bitsandbytes, optim/optimizer.py, blockwise;
    // torchao, optim/adam.py).
    {.name = "int8", .bits = 8, .scales = {32, 256}},
    // A 16-bit scale and a 4-bit zero point for 128 weights (GPTQ, AWQ).
    {.name = "int4", .bits = 4, .scales = {16 + 4, 128}, .weight_only = true},
    // A 16-bit scale for 32 weights (compressed-tensors, as of Kimi-K2-Thinking).
    {.name = "int4_g32",
     .bits = 4,
     .scales = {16, 32},
     .weight_only = true,
     .measured_as = Dtype::int4},
    // NormalFloat4 (QLoRA, arXiv 2305.14314, section 3): an fp32 scale for 64 weights; doubly
    // quantised scales have 8 bits, and an fp32 scale for 256 of them. bitsandbytes 0.50 multiplies
    // by what is stored for up to 8 to 256 rows, by GPU and shape, 32 or 64 on an H100 that a
    // product fills (backends/cuda/ops.py, _gemm_4bit_use_custom_cuda).
    {.name = "nf4",
     .bits = 4,
     .scales = {32, 64},
     .weight_only = true,
     .fused_rows = 32,
     .measured_as = Dtype::int4},
    {.name = "nf4_dq",
     .bits = 4,
     .scales = {8, 64},
     .scales_of_scales = {32, 64 * 256},
     .weight_only = true,
     .fused_rows = 32,
     .measured_as = Dtype::int4},
    // nvfp4's weights with activations in 16 bits (llm-compressor: NVFP4A16; ModelOpt:
    // W4A16_NVFP4), multiplied by Marlin's kernels, as int4's.
    {.name = "nvfp4a16",
     .bits = 4,
     .scales = {8, 16},
     .weight_only = true,
     .measured_as = Dtype::int4},
};

constexpr const NumberFormat& facts(Dtype dtype) {
  return number_formats[static_cast<std::size_t>(dtype)];
}
const std::string& name(Dtype dtype);

/// Bytes of an element with its share of the scales.
constexpr double element_bytes(Dtype dtype) {
  const NumberFormat& format = facts(dtype);
  const auto share = [](const ScaleBlocks& scales) { return scales.bits / scales.elements; };
  return (format.bits + share(format.scales) + share(format.scales_of_scales)) / 8.0;
}

/// Formats below 16 bits, whose operands are quantised.
constexpr bool is_narrow(Dtype dtype) { return facts(dtype).bits < 16.0; }
constexpr bool is_wide(Dtype dtype) { return facts(dtype).bits > 16.0; }
constexpr bool has_scale_blocks(Dtype dtype) { return facts(dtype).scales.bits > 0.0; }

/// Bytes of an element of a tensor that this format's products do not quantise.
constexpr double unquantised_bytes(Dtype dtype) { return is_wide(dtype) ? 4.0 : 2.0; }

constexpr Dtype measured_as(Dtype dtype) { return facts(dtype).measured_as.value_or(dtype); }
constexpr Dtype cache_measured_as(Dtype dtype) {
  return facts(dtype).cache_measured_as.value_or(measured_as(dtype));
}

/// Uses of a format: operands of training's products, weights and the KV cache of a deployment,
/// Adam's moments, states of mixers that keep one.
enum class FormatUse { products, weights, kv_cache, moments, states };

/// The formats of a use, and their names, in the order in which options list them.
std::span<const Dtype> formats_for(FormatUse use);
const std::vector<std::string>& format_names(FormatUse use);
std::optional<Dtype> format_named(std::string_view word, FormatUse use);
/// Errors: unknown words.
Dtype read_format(const JsonValue& json, FormatUse use);
/// The formats of a use as values of a field or an option.
Notation<Dtype> format_of(FormatUse use);

/// Names of the formats of products whose elements have `bits`.
std::vector<std::string> names_of_products(double bits);

/// The key of a peak in a GPU's file, and the format after which its units are named.
struct PeakKey {
  std::string_view key;
  FlopPerSecond Peaks::*peak;
  Dtype format;
  bool in_all;  ///< All GPUs have such units.
};
inline constexpr std::array peak_keys{
    PeakKey{"peak_16bit", &Peaks::peak_16bit, Dtype::bf16, true},
    PeakKey{"peak_fp8", &Peaks::peak_fp8, Dtype::fp8, false},
    PeakKey{"peak_fp4", &Peaks::peak_fp4, Dtype::nvfp4, false},
    PeakKey{"peak_tf32", &Peaks::peak_tf32, Dtype::tf32, false},
    PeakKey{"peak_fp32", &Peaks::peak_fp32, Dtype::fp32, true},
};

}  // namespace orrery
