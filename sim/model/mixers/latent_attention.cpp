#include "sim/model/mixers/latent_attention.hpp"

#include "sim/model/model.hpp"

namespace orrery {

std::vector<WeightMatrix> LatentAttentionMixer::matrices(std::int64_t hidden) const {
  const std::int64_t queries = heads * (nope_dim + rope_dim);
  std::vector<WeightMatrix> all;
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

KeptBytes LatentAttentionMixer::kept(std::int64_t) const {
  // An index key in fp8 with a scale in fp32 (FlashMLA's layout).
  const std::int64_t of_index = index && index->own ? index->dim + 4 : 0;
  return {.per_token = static_cast<double>(2 * (kv_rank + rope_dim) + of_index)};
}

bool LatentAttentionMixer::describe(Model& layer) const {
  if (index) return false;
  layer.heads = layer.kv_heads = heads;
  layer.head_dim = nope_dim + rope_dim;
  layer.output_gate = output_gate;
  layer.latent = LatentAttention{.q_rank = q_rank,
                                 .kv_rank = kv_rank,
                                 .nope_dim = nope_dim,
                                 .rope_dim = rope_dim,
                                 .v_dim = value_dim};
  return true;
}

namespace {

// Down-projections and indexes are on every rank: vllm/model_executor/models/deepseek_v2.py.
std::int64_t copied_parameters(const Mixer& mixer, std::int64_t hidden) {
  std::int64_t count = mixer.vectors(hidden);
  for (const WeightMatrix& matrix : mixer.matrices(hidden))
    if (matrix.name == "q_down" || matrix.name == "kv_down" || matrix.name == "kv" ||
        matrix.name == "compress" || matrix.name.starts_with("index_"))
      count += matrix.in * matrix.out;
  return count;
}

constexpr double rotated = 64.0, entry_scales = 8.0;

}  // namespace

std::optional<AttentionModule> LatentAttentionMixer::module(std::int64_t hidden) const {
  if (!index) return std::nullopt;
  AttentionModule module;
  module.decode = index->own ? "sparse_decode" : "sparse_decode_shared";
  module.prefill = index->own ? "sparse_prefill" : "sparse_prefill_shared";
  module.heads = heads;
  module.q_rank = q_rank;
  module.index_heads = index->heads;
  // In fp8 FlashMLA's layout: a scale of 4 bytes for 128 values, and the rotated ones in 16 bits.
  const auto rank = static_cast<double>(kv_rank), rope = static_cast<double>(rope_dim);
  module.values = rank + rope;
  module.narrow_bytes = rank + rank / 32.0 + 2.0 * rope;
  module.bytes = index->own ? static_cast<double>(index->dim) + 4.0 : 0.0;
  module.copied = copied_parameters(*this, hidden);
  return module;
}

std::optional<AttentionModule> CompressedAttention::module(std::int64_t hidden) const {
  AttentionModule module;
  module.decode = index_heads > 0 ? "csa_decode" : "hca_decode";
  module.prefill = index_heads > 0 ? "csa_prefill" : "hca_prefill";
  module.heads = heads;
  module.q_rank = q_rank;
  module.index_heads = std::max<std::int64_t>(1, index_heads);
  // An entry in vLLM's layout has 584 bytes: 448 values in fp8 with a byte of scale for 64 of them
  // and one of padding, and 64 rotated ones in 16 bits. Index keys have 8 bits and a scale.
  const double entry = static_cast<double>(head_dim) + rotated + entry_scales;
  const double key = index_heads > 0 ? static_cast<double>(index_dim) + 4.0 : 0.0;
  if (ratio > 0)
    module.bytes = (entry + key) / static_cast<double>(ratio);
  else
    module.most_context = window;
  module.window = window;
  module.window_bytes = entry;
  module.unfinished = halves() * ratio;
  module.unfinished_bytes = static_cast<double>(kept(hidden).states);
  module.copied = copied_parameters(*this, hidden);
  return module;
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

std::vector<WeightMatrix> CompressedAttention::matrices(std::int64_t hidden) const {
  const std::int64_t channels = heads * head_dim;
  std::vector<WeightMatrix> all{
      {"q_down", hidden, q_rank}, {"q_up", q_rank, channels}, {"kv", hidden, head_dim}};
  // A product makes the entries and the weights with which they are summed, for every half.
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

KeptBytes CompressedAttention::kept(std::int64_t) const {
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
