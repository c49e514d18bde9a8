#include "sim/model/mixers/compressed_attention.hpp"

namespace orrery {

std::vector<Matrix> CompressedAttention::matrices(std::int64_t hidden) const {
  const std::int64_t channels = heads * head_dim;
  std::vector<Matrix> all{
      {"q_down", hidden, q_rank}, {"q_up", q_rank, channels}, {"kv", hidden, head_dim}};
  // What is compressed and the weights of the sum, each of every half.
  if (ratio > 0) all.push_back({"compress", hidden, 2 * halves() * head_dim});
  if (index_heads > 0) {
    all.push_back({"index_q", q_rank, index_heads * index_dim});
    all.push_back({"index_weights", hidden, index_heads});
    all.push_back({"index_compress", hidden, 2 * halves() * index_dim});
  }
  all.push_back({"out_down", channels / out_groups, out_groups * out_rank});
  all.push_back({"out_up", out_groups * out_rank, hidden});
  return all;
}

std::int64_t CompressedAttention::vectors(std::int64_t) const {
  // Norms of queries and keys, and a sink a head; a compressor has positions and a norm.
  const auto compressor = [&](std::int64_t dim) { return ratio * halves() * dim + dim; };
  return q_rank + head_dim + heads + (ratio > 0 ? compressor(head_dim) : 0) +
         (index_heads > 0 ? compressor(index_dim) : 0);
}

KeptBytes CompressedAttention::kept() const {
  KeptBytes bytes;
  bytes.window = static_cast<double>(window * head_dim * 2);
  if (ratio == 0) return bytes;
  bytes.per_token = 2.0 * static_cast<double>(head_dim + index_dim) / static_cast<double>(ratio);
  // Inputs of the entries that are not full yet, values and weights in fp32.
  bytes.states = 2 * halves() * halves() * ratio * (head_dim + index_dim) * 4;
  return bytes;
}

MixerPointer parse_compressed_attention(const JsonValue& json) {
  MixerKeys keys{json,
                 {"heads", "head_dim", "q_rank", "out_groups", "out_rank", "window", "ratio",
                  "index_heads", "index_dim", "index_top"}};
  auto attention = std::make_shared<CompressedAttention>();
  attention->heads = keys.size("heads");
  attention->head_dim = keys.size("head_dim");
  attention->q_rank = keys.size("q_rank");
  attention->out_groups = keys.size("out_groups");
  attention->out_rank = keys.size("out_rank");
  attention->window = keys.tokens("window");
  attention->ratio = keys.size("ratio", 0);
  attention->index_heads = keys.size("index_heads", 0);
  if (attention->index_heads > 0) {
    attention->index_dim = keys.size("index_dim");
    attention->index_top = keys.size("index_top");
  }
  keys.check_divides(attention->out_groups, attention->heads,
                     "heads do not form groups of outputs:");
  keys.raise();
  return attention;
}

}  // namespace orrery
