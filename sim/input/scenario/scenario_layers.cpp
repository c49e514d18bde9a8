#include <algorithm>
#include <numeric>

#include "sim/input/scenario/scenario.hpp"

namespace orrery {

int Scenario::first_layer(int virtual_stage) const {
  return std::accumulate(layers_of.begin(), layers_of.begin() + virtual_stage, 0);
}

LayerKind Scenario::kind_of(int layer) const {
  const auto says = [&](const std::vector<bool>& flags) {
    return !flags.empty() && flags[static_cast<std::size_t>(layer)];
  };
  const bool windowed =
      plan.fused_attention && model.window < plan.seq && says(model.layer_is_local);
  return {says(model.layer_has_experts), windowed ? model.window : 0};
}

std::vector<LayerKind> Scenario::kinds() const {
  std::vector<LayerKind> found;
  for (int layer = 0; layer < model.layers; ++layer) {
    const LayerKind kind = kind_of(layer);
    if (std::find(found.begin(), found.end(), kind) == found.end()) found.push_back(kind);
  }
  return found;
}

int Scenario::dense_layers_before(int layer) const {
  int count = 0;
  for (int l = 0; l < layer; ++l) count += !kind_of(l).has_experts;
  return count;
}

std::vector<int> split_layers(int layers, int stages) {
  const auto equal = [&](int padded) {
    return std::vector<int>(static_cast<std::size_t>(stages), padded / stages);
  };
  if (layers >= stages && layers % stages == 0) return equal(layers);
  for (int missing : {2, 1, 3}) {
    if (stages < 2 || (layers + missing) % stages != 0) continue;
    std::vector<int> split = equal(layers + missing);
    split.back() -= (missing + 1) / 2;
    split.front() -= missing / 2;
    // Stages that only embed or only have the head are what plans of as many chunks as layers mean.
    if (split.back() < 0 || split.front() < 0 || (stages > 2 && split[1] < 1)) continue;
    return split;
  }
  return {};
}

}  // namespace orrery
