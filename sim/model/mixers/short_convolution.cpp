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

// transformers, models/lfm2/modeling_lfm2.py, Lfm2ShortConv: channels are cut, and two gates lie
// before and behind the convolution, whose input and output are kept.
std::optional<StateWork> ShortConvolution::work(std::int64_t hidden, std::int64_t tp) const {
  const std::int64_t own = hidden / tp;
  StateWork work;
  work.heads = work.groups = hidden;
  work.inputs = {3 * own};
  work.convolved = work.output = own;
  work.taps = taps;
  work.gated = work.kept_channels = 2 * own;
  work.vectors = taps * own + (bias ? 4 * own + hidden : 0);
  return work;
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
