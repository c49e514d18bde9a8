#include "sim/model/mixers/short_convolution.hpp"

namespace orrery {

std::vector<WeightMatrix> ShortConvolution::matrices(std::int64_t hidden) const {
  return {{"in", hidden, 3 * hidden}, {"out", hidden, hidden}};
}

std::int64_t ShortConvolution::vectors(std::int64_t hidden) const {
  return taps * hidden + (bias ? 5 * hidden : 0);
}

KeptBytes ShortConvolution::kept(std::int64_t hidden) const {
  return {.states = (taps - 1) * hidden * 2};
}

MixerPointer parse_short_convolution(const JsonValue& json) {
  MixerKeys keys{json, {"taps", "bias"}};
  auto convolution = std::make_shared<ShortConvolution>();
  convolution->taps = keys.size("taps");
  convolution->bias = keys.flag("bias");
  keys.raise();
  return convolution;
}

}  // namespace orrery
