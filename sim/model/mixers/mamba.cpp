#include "sim/model/mixers/mamba.hpp"

namespace orrery {

std::vector<Matrix> Mamba2::matrices(std::int64_t hidden) const {
  return {{"in", hidden, inner() + convolved() + heads}, {"out", inner(), hidden}};
}

std::int64_t Mamba2::vectors(std::int64_t) const {
  // The convolution has a bias; a head a decay, a time step and a share of its input.
  return (conv + 1) * convolved() + 3 * heads + (norm ? inner() : 0);
}

KeptBytes Mamba2::kept(std::int64_t) const {
  return {.states = inner() * state * 4 + (conv - 1) * convolved() * 2};
}

MixerPointer parse_mamba2(const JsonValue& json) {
  MixerKeys keys{json, {"heads", "head_dim", "state", "groups", "conv", "chunk", "norm"}};
  auto mamba = std::make_shared<Mamba2>();
  mamba->heads = keys.size("heads");
  mamba->head_dim = keys.size("head_dim");
  mamba->state = keys.size("state");
  mamba->groups = keys.size("groups");
  mamba->conv = keys.size("conv");
  mamba->chunk = keys.size("chunk");
  mamba->norm = keys.flag("norm", true);
  keys.check_divides(mamba->groups, mamba->heads, "heads do not form groups:");
  keys.raise();
  return mamba;
}

std::vector<Matrix> Mamba1::matrices(std::int64_t hidden) const {
  return {{"in", hidden, 2 * inner},
          {"x", inner, time_rank + 2 * state},
          {"dt", time_rank, inner},
          {"out", inner, hidden}};
}

std::int64_t Mamba1::vectors(std::int64_t) const {
  // Convolution with bias, bias of time steps, decays, and the share of the input.
  return (conv + 1) * inner + inner + inner * state + inner + (norms ? time_rank + 2 * state : 0);
}

KeptBytes Mamba1::kept(std::int64_t) const {
  return {.states = inner * state * 4 + (conv - 1) * inner * 2};
}

MixerPointer parse_mamba1(const JsonValue& json) {
  MixerKeys keys{json, {"inner", "state", "time_rank", "conv", "norms"}};
  auto mamba = std::make_shared<Mamba1>();
  mamba->inner = keys.size("inner");
  mamba->state = keys.size("state");
  mamba->time_rank = keys.size("time_rank");
  mamba->conv = keys.size("conv");
  mamba->norms = keys.flag("norms");
  keys.raise();
  return mamba;
}

}  // namespace orrery
