#pragma once

#include "sim/model/mixer.hpp"

namespace orrery {

/// Blocks of keys of which each query sees those that an index chooses (MiniMax-M3).
struct BlockIndex {
  std::int64_t heads = 0, dim = 0;
  std::int64_t block = 0;  ///< Keys of a block.
  std::int64_t top = 0;    ///< Blocks that a query sees.
};

/// Softmax attention over all tokens, the last ones, or those of a chunk.
class Attention : public Mixer {
 public:
  std::int64_t heads = 0, kv_heads = 0;
  std::int64_t head_dim = 0;   ///< Of queries and keys.
  std::int64_t value_dim = 0;  ///< Of values.
  std::int64_t window = 0;     ///< Tokens that a query sees at most; 0: all.
  bool chunked = false;        ///< The window is the chunk that the query lies in (Llama 4).
  bool rotary = true;
  bool output_gate = false;      ///< A second part of the queries scales the output (Qwen3-Next).
  bool values_are_keys = false;  ///< No matrix of values; both are kept (Gemma 4).
  bool qk_norm = false;
  bool wide_qk_norm = false;  ///< The norms span all heads.
  bool qkv_bias = false, out_bias = false;
  bool sinks = false;  ///< A trained logit a head.
  std::optional<BlockIndex> index;

  std::string kind() const override { return "attention"; }
  std::vector<WeightMatrix> matrices(std::int64_t hidden) const override;
  std::int64_t vectors(std::int64_t hidden) const override;
  KeptBytes kept(std::int64_t hidden) const override;
  bool describe(Model& layer) const override;
  std::optional<AttentionModule> module(std::int64_t hidden) const override;
};

MixerPointer parse_attention(const JsonValue& json);

}  // namespace orrery
