#pragma once

#include <string>
#include <vector>

#include "sim/cluster/system.hpp"
#include "sim/core/units.hpp"

namespace orrery {

/// How weights are stored and multiplied. Scales are counted with the bytes of a weight.
enum class WeightFormat { bf16, fp16, fp8, fp8_block, nvfp4, mxfp4, int8, int4 };

const std::vector<std::string>& weight_format_names();  ///< In the enumerators' order.
const std::string& name(WeightFormat format);

/// Bytes of one weight with its share of the scales: nvfp4 one fp8 scale for 16 (NVIDIA Blackwell
/// NVFP4, 2025), mxfp4 one 8-bit scale for 32 (OCP Microscaling v1.0), int4 a 16-bit scale and a
/// 4-bit zero for 128 (GPTQ, AWQ), fp8_block a 32-bit scale for 128 x 128 (DeepSeek-V3).
double bytes_per_weight(WeightFormat format);

/// Peak of the units that multiply it. fp8 and fp8_block are multiplied in 8 bits, nvfp4 in 4;
/// mxfp4, int8 and int4 hold weights alone and are multiplied in 16. Errors (infeasible): the GPU
/// has none such.
FlopPerSecond peak_of(const Gpu& gpu, WeightFormat format, const Place& at);
MaybeRefused lacks_units(const Gpu& gpu, WeightFormat format);

/// The word of kernel tables: fp16 is measured as bf16, because tensor cores run both at one rate.
const std::string& table_word(WeightFormat format);

/// How keys and values are cached.
enum class KvFormat { bf16, fp16, fp8, nvfp4 };

const std::vector<std::string>& kv_format_names();
const std::string& name(KvFormat format);
double bytes_per_value(KvFormat format);
const std::string& table_word(KvFormat format);

}  // namespace orrery
