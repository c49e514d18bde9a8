#pragma once

#include <cstdint>

namespace orrery {

/// No published model comes near these. They keep a mistyped digit from looking like a model, and
/// with max_parameters they keep every count inside 64 bits.
constexpr std::int64_t max_layers = 10'000;
constexpr std::int64_t max_heads = 100'000;
constexpr std::int64_t max_experts = 100'000;
constexpr std::int64_t max_width = 10'000'000;      ///< hidden, ffn, ranks, head dimensions
constexpr std::int64_t max_tokens = 1'000'000'000;  ///< vocabulary, sequence, window
constexpr double max_parameters = 1e16;

}  // namespace orrery
