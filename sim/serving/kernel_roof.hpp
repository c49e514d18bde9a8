#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "sim/cluster/system.hpp"

namespace orrery {

/// Work of an inference kernel: operations of its products, and memory traffic.
struct KernelWork {
  Flop flop;
  Bytes bytes;
};

/// The formats that a kernel's table was measured with; those that do not concern it are ignored.
struct KernelFormats {
  Dtype weights = Dtype::bf16;
  Dtype kv = Dtype::bf16;
};

/// Work of one kernel of `op` with the sizes that serving_table_columns() names: b requests, a
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
///     dispatched_prompts, dispatched_experts    the same, with an even router
///     delta_rule, ...    2 t a (64 (3 128 + 2 128) + 3 128 128);   q, k, v, the output and states
///     state_space        2 t a (64 64 + 2 128 64)      the same
///     delta_rule_step    7 b a 128 128;                states read and written, in fp32
///     sparse_decode      the projections' products, 2 i 128 c of the index, 2 a 1088 min(c, 2048);
///                        weights, index keys of c tokens, the chosen keys
///     csa_decode, ...    the same with c / 4 and c / 128 entries, and a window of 128 tokens
///     msa_decode, ...    the same with 2,176 tokens in blocks, and index keys of 256 bytes
///     streams_pre, _post 2 t 24 (4 h) in all;          20 h and 36 h channels a token
///     convolution        -;                            t channels read and written
///     all_reduce         -;                            2 (g - 1) / g of the tensor over one link
KernelWork kernel_work(const std::string& op, const KernelFormats& formats,
                       std::span<const std::int64_t> sizes);

/// The products of a layer's experts: "experts", or of tokens that an all-to-all brought.
bool is_of_experts(const std::string& op);

/// Attention that was measured as a module with its projections.
bool is_module(const std::string& op);

/// A scan of prompts by a mixer with a state.
bool is_scan(const std::string& op);

/// Expected number of a rank's experts (1/ep of `experts`) that `tokens` tokens visit, `per_token`
/// each. Uneven routing counts as `evenness` times as many even draws: 0.75 for power_law_1.2, with
/// which tables were measured (fitted on their rows); 1: even.
double distinct_experts(std::int64_t experts, std::int64_t ep, std::int64_t per_token,
                        double tokens, double evenness);
inline constexpr double power_law_evenness = 0.75;

/// Peak of the units that multiply weights of a format. Errors (infeasible): the GPU has none such.
FlopPerSecond peak_of(const Gpu& gpu, Dtype format, const Place& at);
MaybeRefused lacks_units(const Gpu& gpu, Dtype format);

/// The least time that the work takes on a GPU, with a fixed start: the base of all interpolation.
/// `peak` is that of the kernel's units, 0 if it multiplies nothing; `bandwidth` is the memory's,
/// or the link's for an all-reduce. The starts are in kernel_roof.cpp.
Seconds kernel_roof(const std::string& op, const KernelWork& work, FlopPerSecond peak,
                    BytesPerSecond bandwidth);

}  // namespace orrery
