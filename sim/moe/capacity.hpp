#pragma once

#include <cstdint>

namespace orrery {

/// Copies that an expert takes from one rank in one micro-batch, of `tokens` tokens with
/// `per_token` experts each: ceil(factor tokens per_token / experts), as in Megatron-LM
/// (megatron/core/transformer/moe/moe_utils.py, get_capacity).
std::int64_t expert_capacity(double factor, std::int64_t tokens, std::int64_t per_token,
                             std::int64_t experts);

/// Mean of max(0, X - capacity), X a binomial of `n` trials of probability `p`: the copies that a
/// rank drops of an expert that a share p of its tokens visit.
double binomial_excess(std::int64_t n, double p, std::int64_t capacity);

}  // namespace orrery
