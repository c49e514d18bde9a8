#include "sim/model/mixers/mamba.hpp"

#include <algorithm>

namespace orrery {

std::vector<WeightMatrix> Mamba2::matrices(std::int64_t hidden) const {
  return {{"in", hidden, inner() + convolved() + heads}, {"out", inner(), hidden}};
}

std::int64_t Mamba2::vectors(std::int64_t) const {
  // The convolution has a bias; a head a decay, a time step and a share of its input.
  return (conv + 1) * convolved() + 3 * heads + (norm ? inner() : 0);
}

KeptBytes Mamba2::kept(std::int64_t) const {
  return {.states = inner() * state * 4 + (conv - 1) * convolved() * 2};
}

// Heads are cut, and groups with them down to one a rank.
std::optional<StateWork> Mamba2::work(std::int64_t, std::int64_t tp) const {
  const std::int64_t own_heads = heads / tp, own_inner = inner() / tp;
  const std::int64_t own_groups = std::max<std::int64_t>(1, groups / tp);
  StateWork work;
  work.heads = heads;
  work.groups = groups;
  work.convolved = own_inner + 2 * own_groups * state;
  work.taps = conv;
  work.inputs = {own_inner + work.convolved + own_heads};
  work.scan = {ScanKind::state_space, own_heads, state, head_dim};
  work.gated = own_inner;
  work.output = own_inner;
  work.chunk = chunk;
  // The fused operator of convolution, scan and gate computes all else again (mamba_ssm,
  // ops/triton/ssd_combined.py, MambaSplitConv1dScanCombinedFn): it keeps the scan's output before
  // the gate. The norm behind it keeps its input and a root mean square a token (Megatron Core,
  // ssm/mamba_mixer.py, _ssm_training).
  work.convolves_again = true;
  work.kept_channels = (norm ? 2 : 1) * own_inner;
  work.kept_bytes = norm ? 4.0 : 0.0;
  work.vectors = (conv + 1) * work.convolved + 3 * own_heads + (norm ? own_inner : 0);
  return work;
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

std::vector<WeightMatrix> Mamba1::matrices(std::int64_t hidden) const {
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

// Channels are cut, so that the product that makes time steps, inputs and outputs of the state is
// row-parallel and the one that expands the time steps column-parallel (vllm,
// model_executor/layers/mamba/mamba_mixer.py: x_proj is a RowParallelLinear, whose sums are
// reduced). The scan's kernel gates its output.
std::optional<StateWork> Mamba1::work(std::int64_t, std::int64_t tp) const {
  const std::int64_t own = inner / tp, made = time_rank + 2 * state;
  StateWork work;
  work.heads = work.groups = inner;
  work.inputs = {2 * own};
  work.inner = {{"x", own, made}, {"dt", time_rank, own}};
  work.summed = made;
  work.convolved = work.output = own;
  work.taps = conv;
  work.scan = {ScanKind::selective, own, state, 1};
  if (norms) {
    // No operator fuses the layer with its norms, so that each kernel keeps its inputs
    // (transformers, models/jamba/modeling_jamba.py, cuda_kernels_forward): outputs of the
    // convolution and of x before and behind the norms, time steps, the scan's output.
    work.kept_channels = 3 * own + 2 * made;
  } else {
    // mamba_ssm, ops/selective_scan_interface.py, MambaInnerFn with checkpoint_lvl 1: outputs of x,
    // inputs and outputs of the state once more in the scan's layout, the scan's output before the
    // gate. The backward pass computes the convolution, the time steps and the gate again.
    work.kept_channels = made + 2 * state + own;
    work.convolves_again = work.gates_again = true;
  }
  // Decay and state in fp32 at the end of each chunk of 2,048 tokens (csrc/selective_scan/
  // selective_scan.cpp, scan_intermediates).
  work.kept_bytes = static_cast<double>(own * state) * 2.0 * 4.0 / 2048.0;
  work.vectors = (conv + 1) * own + own + own * state + own + (norms ? made : 0);
  return work;
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
