#include "sim/model/mixers/lightning.hpp"

namespace orrery {

std::vector<Matrix> Lightning::matrices(std::int64_t hidden) const {
  const std::int64_t channels = heads * head_dim;
  return {{"qkv", hidden, 3 * channels}, {"gate", hidden, channels}, {"out", channels, hidden}};
}

std::int64_t Lightning::vectors(std::int64_t) const {
  return heads * head_dim;  // The norm of the output.
}

KeptBytes Lightning::kept() const { return {.states = heads * head_dim * head_dim * 4}; }

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
