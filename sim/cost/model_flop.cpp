#include <algorithm>

#include "sim/cost/step_cost.hpp"

namespace orrery {

// Forward flop of a sequence of s tokens: 2 s per weight of a matrix, and 4 s^2 a d per layer for
// scores and values (half of it where the causal mask is counted). The embedding is a look-up; the
// output head is a matrix. Backward is twice forward (Narayanan et al., arXiv 2104.04473, appendix;
// the causal half as Megatron-LM's num_floating_point_operations counts).
Flop model_flop(const Model& model, std::int64_t sequences, std::int64_t sequence, bool causal) {
  const auto hidden = static_cast<double>(model.hidden);
  const auto tokens = static_cast<double>(sequence);
  const auto head_dim = static_cast<double>(model.head_dim);
  const auto heads = static_cast<double>(model.heads);
  const double attention = 2.0 * hidden * heads * head_dim +
                           2.0 * hidden * static_cast<double>(model.kv_heads) * head_dim;
  const double mlp = (model.gated ? 3.0 : 2.0) * hidden * static_cast<double>(model.ffn);
  const double weights =
      model.layers * (attention + mlp) + hidden * static_cast<double>(model.vocab);
  double core = 0.0;
  for (int layer = 0; layer < model.layers; ++layer) {
    const bool local = !model.layer_is_local.empty() &&
                       model.layer_is_local[static_cast<std::size_t>(layer)] && model.window > 0;
    const double keys =
        local ? std::min(tokens, static_cast<double>(model.window)) : tokens * (causal ? 0.5 : 1.0);
    core += 4.0 * tokens * keys * heads * head_dim;
  }
  return Flop{3.0 * static_cast<double>(sequences) * (2.0 * tokens * weights + core)};
}

}  // namespace orrery
