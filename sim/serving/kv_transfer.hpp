#pragma once

#include <vector>

#include "sim/serving/deployment.hpp"

namespace orrery {

/// Bytes of the keys and values of so many tokens of a prompt, of all layers and heads once: what a
/// decode step reads of them. Layers with a window count no token that has left it.
///
///     sum over layers of min(tokens, window) x 2 kv_heads head_dim B      latent: (512 + 64) B
Bytes kv_bytes(const Model& model, KvFormat format, std::int64_t tokens);

/// What one GPU of a copy of the prefill pool sends to one of a copy of the decode pool. GPUs count
/// within their copy, stage by stage and rank by rank: stage x tp + rank.
struct KvLane {
  int from = 0, to = 0;
  double share = 0.0;  ///< Of kv_bytes().
};

/// Who sends what to whom, between copies of attention that are cut differently: each rank gets the
/// layers of its stage and the key heads of its rank from one that has them. Ranks of the decode
/// pool that hold the same heads, as all do of a latent cache, each get them, so that the shares
/// may add up to more than one; ranks of the prefill pool that hold the same take turns.
std::vector<KvLane> kv_lanes(const Model& model, const Deployment& prefill,
                             const Deployment& decode);

}  // namespace orrery
