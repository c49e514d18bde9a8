#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "sim/cluster/system.hpp"

namespace orrery {

/// What an inference kernel must do: products and memory traffic.
struct KernelWork {
  Flop flop;
  Bytes bytes;
};

/// The formats that a kernel's table was measured with; those that do not concern it are ignored.
struct KernelFormats {
  Dtype weights = Dtype::bf16;
  Dtype kv = Dtype::bf16;
};

/// Work of one kernel of `op`, with the sizes that serving_table_columns() names. b requests, a
/// heads, v key heads, d = head dimension, B bytes of a value, s tokens of a prompt, c of the
/// cache.
///
///     gemm               2 m n k;                      weights n k, x m k and y m n
///     decode_attention   4 b a d c;                    2 b v d min(c, window) B, q and o
///     prefill_attention  2 b a d s^2 (causal);         q, k, v and o
///     latent_decode      2 b c a (576 + 512);          576 b c B, q and o       (DeepSeek-V3)
///     latent_prefill     b a s^2 (192 + 128);          q, k, v and o
///     latent_pre, _post  2 t a 512 128;                weights 512 x 128 a head, in and out
///     experts            6 t k h f / (tp ep);          the distinct experts' weights, in and out
///     all_reduce         -;                            2 (g - 1) / g of the tensor over one link
KernelWork kernel_work(const std::string& op, const KernelFormats& formats,
                       std::span<const std::int64_t> sizes);

/// Experts of a rank that `tokens` tokens visit, `per_token` each of `experts`, of which a rank
/// holds 1/ep. Draws are uneven: they count as `evenness` times as many even ones, 0.75 for the
/// power law of 1.2 that tables were measured with (fitted on their rows); 1: even.
double distinct_experts(std::int64_t experts, std::int64_t ep, std::int64_t per_token,
                        double tokens, double evenness);
inline constexpr double power_law_evenness = 0.75;

/// Peak of the units that multiply weights of a format. Errors (infeasible): the GPU has none such.
FlopPerSecond peak_of(const Gpu& gpu, Dtype format, const Place& at);
MaybeRefused lacks_units(const Gpu& gpu, Dtype format);

/// The least time that the work takes on a GPU, with a fixed start: the base of all interpolation.
/// `peak` is that of the kernel's units, 0 where it multiplies nothing; `bandwidth` of the memory,
/// of an all-reduce of the link. The starts are in kernel_roof.cpp.
Seconds kernel_roof(const std::string& op, const KernelWork& work, FlopPerSecond peak,
                    BytesPerSecond bandwidth);

}  // namespace orrery
