#include "sim/model/mixers/latent_attention.hpp"

namespace orrery {

std::vector<Matrix> LatentAttentionMixer::matrices(std::int64_t hidden) const {
  const std::int64_t queries = heads * (nope_dim + rope_dim);
  std::vector<Matrix> all;
  if (q_rank > 0) {
    all.push_back({"q_down", hidden, q_rank});
    all.push_back({"q_up", q_rank, queries});
  } else {
    all.push_back({"q", hidden, queries});
  }
  all.push_back({"kv_down", hidden, kv_rank + rope_dim});
  all.push_back({"kv_up", kv_rank, heads * (nope_dim + value_dim)});
  if (output_gate) all.push_back({"gate", hidden, heads * value_dim});
  if (index && index->own) {
    all.push_back({"index_q", q_rank, index->heads * index->dim});
    all.push_back({"index_k", hidden, index->dim});
    all.push_back({"index_weights", hidden, index->heads});
  }
  all.push_back({"out", heads * value_dim, hidden});
  return all;
}

std::int64_t LatentAttentionMixer::vectors(std::int64_t) const {
  // The index key has a layer norm with its bias.
  return q_rank + kv_rank + (index && index->own ? 2 * index->dim : 0);
}

KeptBytes LatentAttentionMixer::kept() const {
  // An index key in fp8 with a scale in fp32 (FlashMLA's layout).
  const std::int64_t of_index = index && index->own ? index->dim + 4 : 0;
  return {.per_token = static_cast<double>(2 * (kv_rank + rope_dim) + of_index)};
}

MixerPointer parse_latent_attention(const JsonValue& json) {
  MixerKeys keys{json,
                 {"heads", "q_rank", "kv_rank", "nope_dim", "rope_dim", "value_dim", "output_gate",
                  "index_heads", "index_dim", "index_top", "own_index"}};
  auto attention = std::make_shared<LatentAttentionMixer>();
  attention->heads = keys.size("heads");
  attention->q_rank = keys.size("q_rank", 0);
  attention->kv_rank = keys.size("kv_rank");
  attention->nope_dim = keys.size("nope_dim");
  attention->rope_dim = keys.size("rope_dim");
  attention->value_dim = keys.size("value_dim");
  attention->output_gate = keys.flag("output_gate");
  if (const std::int64_t heads = keys.size("index_heads", 0); heads > 0)
    attention->index = SparseIndex{heads, keys.size("index_dim"), keys.size("index_top"),
                                   keys.flag("own_index", true)};
  keys.raise();
  return attention;
}

}  // namespace orrery
