#include "sim/model/mixers/linear_attention.hpp"

namespace orrery {

std::vector<WeightMatrix> GatedDeltaNet::matrices(std::int64_t hidden) const {
  const std::int64_t values = value_heads * value_dim;
  return {{"qkvz", hidden, channels() + values},
          {"ba", hidden, 2 * value_heads},
          {"out", values, hidden}};
}

std::int64_t GatedDeltaNet::vectors(std::int64_t) const {
  // A decay and a time step a head, and the norm of a head's output.
  return conv * channels() + 2 * value_heads + value_dim;
}

KeptBytes GatedDeltaNet::kept(std::int64_t) const {
  return {.states = value_heads * key_dim * value_dim * 4 + (conv - 1) * channels() * 2};
}

std::optional<StateWork> GatedDeltaNet::work(std::int64_t, std::int64_t tp) const {
  const std::int64_t values = value_heads / tp;
  StateWork work;
  work.heads = work.groups = key_heads;
  work.convolved = channels() / tp;
  work.taps = conv;
  work.inputs = {work.convolved + values * value_dim, 2 * values};
  work.scan = {ScanKind::delta_rule, values, key_dim, value_dim};
  work.gated = work.output = values * value_dim;
  // Queries, keys and values behind the convolution, and the scan's output; the inverse of each
  // chunk of 64 tokens, and decays and weights in fp32 (fla, ops/gated_delta_rule/chunk.py).
  work.kept_channels = work.convolved + work.output;
  work.kept_bytes = static_cast<double>(values * (64 * 2 + 2 * 4));
  work.vectors = conv * work.convolved + 2 * values + value_dim;
  return work;
}

MixerPointer parse_gated_delta_net(const JsonValue& json) {
  MixerKeys keys{json, {"key_heads", "value_heads", "key_dim", "value_dim", "conv"}};
  auto net = std::make_shared<GatedDeltaNet>();
  net->key_heads = keys.size("key_heads");
  net->value_heads = keys.size("value_heads");
  net->key_dim = keys.size("key_dim");
  net->value_dim = keys.size("value_dim");
  net->conv = keys.size("conv");
  keys.check_divides(net->key_heads, net->value_heads, "value heads cannot share key heads:");
  keys.raise();
  return net;
}

std::vector<WeightMatrix> KimiDelta::matrices(std::int64_t hidden) const {
  const std::int64_t channels = heads * head_dim;
  std::vector<WeightMatrix> all{{"qkv", hidden, 3 * channels},
                                {"decay_down", hidden, head_dim},
                                {"decay_up", head_dim, channels},
                                {"beta", hidden, heads}};
  if (full_rank_gate) {
    all.push_back({"gate", hidden, channels});
  } else {
    all.push_back({"gate_down", hidden, head_dim});
    all.push_back({"gate_up", head_dim, channels});
  }
  all.push_back({"out", channels, hidden});
  return all;
}

std::int64_t KimiDelta::vectors(std::int64_t) const {
  // A decay a head, a time step a channel, and the norm of a head's output.
  return 3 * conv * heads * head_dim + heads + heads * head_dim + head_dim;
}

KeptBytes KimiDelta::kept(std::int64_t) const {
  return {.states = heads * head_dim * head_dim * 4 + (conv - 1) * 3 * heads * head_dim * 2};
}

// Every rank has the low ranks of decay and gate.
std::optional<StateWork> KimiDelta::work(std::int64_t, std::int64_t tp) const {
  const std::int64_t own = heads / tp, channels = own * head_dim;
  StateWork work;
  work.heads = work.groups = heads;
  work.convolved = 3 * channels;
  work.taps = conv;
  work.inputs = {3 * channels, head_dim, own};
  work.inner = {{"decay_up", head_dim, channels}};
  if (full_rank_gate) {
    work.inputs.push_back(channels);
  } else {
    work.inputs.push_back(head_dim);
    work.inner.push_back({"gate_up", head_dim, channels});
  }
  work.scan = {ScanKind::channel_delta_rule, own, head_dim, head_dim};
  work.gated = work.output = channels;
  // The same tensors as those of a gated delta net, but each channel has a decay.
  work.kept_channels = work.convolved + work.output;
  work.kept_bytes = static_cast<double>(own * (64 * 2 + 4 + 4 * head_dim));
  work.vectors = conv * work.convolved + own + channels + head_dim;
  return work;
}

MixerPointer parse_kimi_delta(const JsonValue& json) {
  MixerKeys keys{json, {"heads", "head_dim", "conv", "full_rank_gate"}};
  auto delta = std::make_shared<KimiDelta>();
  delta->heads = keys.size("heads");
  delta->head_dim = keys.size("head_dim");
  delta->conv = keys.size("conv");
  delta->full_rank_gate = keys.flag("full_rank_gate");
  keys.raise();
  return delta;
}

std::vector<WeightMatrix> Lightning::matrices(std::int64_t hidden) const {
  const std::int64_t channels = heads * head_dim;
  return {{"qkv", hidden, 3 * channels}, {"gate", hidden, channels}, {"out", channels, hidden}};
}

std::int64_t Lightning::vectors(std::int64_t) const {
  return heads * head_dim;  // The norm of the output.
}

KeptBytes Lightning::kept(std::int64_t) const {
  return {.states = heads * head_dim * head_dim * 4};
}

std::optional<StateWork> Lightning::work(std::int64_t, std::int64_t tp) const {
  const std::int64_t own = heads / tp, channels = own * head_dim;
  StateWork work;
  work.heads = work.groups = heads;
  work.inputs = {3 * channels, channels};
  work.scan = {ScanKind::fixed_decay, own, head_dim, head_dim};
  work.gated = work.output = work.kept_channels = channels;
  work.vectors = channels;
  return work;
}

MixerPointer parse_lightning(const JsonValue& json) {
  MixerKeys keys{json, {"heads", "head_dim", "chunk"}};
  auto lightning = std::make_shared<Lightning>();
  lightning->heads = keys.size("heads");
  lightning->head_dim = keys.size("head_dim");
  lightning->chunk = keys.size("chunk");
  keys.raise();
  return lightning;
}

}  // namespace orrery
