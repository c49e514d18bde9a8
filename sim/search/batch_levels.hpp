#pragma once

#include <cstdint>
#include <vector>

namespace orrery {

/// Tokens of the largest batch that a buyer should count on, unless he knows better: what Llama 3
/// 405B was trained with after 2.87 trillion tokens (arXiv 2407.21783, section 3.4.1: "16M", 2,048
/// sequences of 8,192).
inline constexpr std::int64_t usual_most_batch_tokens = std::int64_t{2048} * 8192;

/// Global batches, in sequences, that are tried together and of which the best counts.
struct BatchLevel {
  std::int64_t limit = 0;             ///< No batch is larger.
  std::vector<std::int64_t> batches;  ///< Rising.
  bool beyond = false;  ///< Larger than training can use: what it would bring, and no choice.
};

/// For batches up to `most` sequences on `gpus` GPUs: those near twice as many, `most`, a half and
/// a quarter of it, in this order. A batch divides among the replicas, whose number is that of the
/// GPUs over a model-parallel degree; so each level has, for a degree of 1, 2, 4, 8 and 16, the
/// largest multiple of gpus / degree up to it that is over half of it. A level that has none is
/// left out.
std::vector<BatchLevel> usual_batch_levels(std::int64_t most, int gpus);
/// Twice the largest of the user's batches, then each of them as a level of its own, falling.
std::vector<BatchLevel> batch_levels_of(const std::vector<std::int64_t>& batches);

}  // namespace orrery
