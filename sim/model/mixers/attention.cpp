#include "sim/model/mixers/attention.hpp"

#include "sim/model/model.hpp"

namespace orrery {

std::vector<WeightMatrix> Attention::matrices(std::int64_t hidden) const {
  const std::int64_t queries = heads * head_dim;
  std::vector<WeightMatrix> all{{"q", hidden, output_gate ? 2 * queries : queries},
                                {"k", hidden, kv_heads * head_dim}};
  if (!values_are_keys) all.push_back({"v", hidden, kv_heads * value_dim});
  if (index) {
    all.push_back({"index_q", hidden, index->heads * index->dim});
    all.push_back({"index_k", hidden, index->dim});
  }
  all.push_back({"out", heads * value_dim, hidden});
  return all;
}

std::int64_t Attention::vectors(std::int64_t hidden) const {
  const std::int64_t queries = heads * head_dim, keys = kv_heads * head_dim;
  std::int64_t count = 0;
  if (qkv_bias) count += queries + keys + kv_heads * value_dim;
  if (out_bias) count += hidden;
  if (wide_qk_norm)
    count += queries + keys;
  else if (qk_norm)
    count += 2 * head_dim;
  if (sinks) count += heads;
  if (index) count += 2 * index->dim;  // Norms of its queries and its key.
  return count;
}

KeptBytes Attention::kept(std::int64_t) const {
  const std::int64_t token = 2 * kv_heads * (head_dim + value_dim);
  if (window > 0) return {.window = static_cast<double>(window) * static_cast<double>(token)};
  return {.per_token = static_cast<double>(token + (index ? 2 * index->dim : 0))};
}

bool Attention::describe(Model& layer) const {
  if (index) return false;
  layer.heads = heads;
  layer.kv_heads = kv_heads;
  layer.head_dim = head_dim;
  layer.value_dim = value_dim;
  layer.window = window;
  layer.chunked_window = chunked;
  layer.layer_is_local = {window > 0};
  layer.rotary = rotary;
  layer.output_gate = output_gate;
  layer.values_are_keys = values_are_keys;
  layer.qk_norm = qk_norm || wide_qk_norm;
  layer.wide_qk_norm = wide_qk_norm;
  layer.qkv_bias = qkv_bias;
  layer.out_bias = out_bias;
  layer.attention_sinks = sinks;
  return true;
}

std::optional<AttentionModule> Attention::module(std::int64_t hidden) const {
  if (!index) return std::nullopt;
  AttentionModule module;
  module.decode = "msa_decode";
  module.prefill = "msa_prefill";
  module.heads = heads;
  module.q_rank = 1;
  module.index_heads = index->heads;
  module.kv_heads = kv_heads;
  module.values = module.narrow_bytes = static_cast<double>(kv_heads * (head_dim + value_dim));
  module.bytes = 2.0 * static_cast<double>(index->dim);
  module.kv_parameters = hidden * kv_heads * (head_dim + value_dim);
  module.copied = vectors(hidden) + hidden * index->dim * (index->heads + 1);
  return module;
}

MixerPointer parse_attention(const JsonValue& json) {
  MixerKeys keys{json,
                 {"heads", "kv_heads", "head_dim", "value_dim", "window", "chunked", "rotary",
                  "output_gate", "values_are_keys", "qk_norm", "wide_qk_norm", "qkv_bias",
                  "out_bias", "sinks", "index_heads", "index_dim", "index_block", "index_top"}};
  auto attention = std::make_shared<Attention>();
  attention->heads = keys.size("heads");
  attention->kv_heads = keys.size("kv_heads", attention->heads);
  attention->head_dim = keys.size("head_dim");
  attention->value_dim = keys.size("value_dim", attention->head_dim);
  attention->window = keys.tokens("window");
  attention->chunked = keys.flag("chunked");
  attention->rotary = keys.flag("rotary", true);
  attention->output_gate = keys.flag("output_gate");
  attention->values_are_keys = keys.flag("values_are_keys");
  attention->qk_norm = keys.flag("qk_norm");
  attention->wide_qk_norm = keys.flag("wide_qk_norm");
  attention->qkv_bias = keys.flag("qkv_bias");
  attention->out_bias = keys.flag("out_bias");
  attention->sinks = keys.flag("sinks");
  if (const std::int64_t heads = keys.size("index_heads", 0); heads > 0)
    attention->index =
        BlockIndex{heads, keys.size("index_dim"), keys.size("index_block"), keys.size("index_top")};
  keys.check_divides(attention->kv_heads, attention->heads, "heads cannot share key/value heads:");
  keys.raise();
  return attention;
}

}  // namespace orrery
