#pragma once

#include "sim/model/mixer.hpp"

namespace orrery {

/// Keys of a small attention that chooses which tokens the large one sees (DeepSeek-V3.2, arXiv
/// 2512.02556).
struct SparseIndex {
  std::int64_t heads = 0, dim = 0;
  std::int64_t top = 0;  ///< Tokens that a query sees.
  bool own = true;       ///< Else the choice of an earlier layer is taken (GLM-5.2).
};

/// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434), with or without a sparse index.
class LatentAttentionMixer : public Mixer {
 public:
  std::int64_t heads = 0;
  std::int64_t q_rank = 0;  ///< 0: queries are projected in one step.
  std::int64_t kv_rank = 0;
  std::int64_t nope_dim = 0;  ///< Each head's part without position.
  std::int64_t rope_dim = 0;  ///< Per query head, and once for all key heads.
  std::int64_t value_dim = 0;
  bool output_gate = false;
  std::optional<SparseIndex> index;

  std::string kind() const override { return "latent_attention"; }
  std::vector<WeightMatrix> matrices(std::int64_t hidden) const override;
  std::int64_t vectors(std::int64_t hidden) const override;
  KeptBytes kept(std::int64_t hidden) const override;
  bool describe(Model& layer) const override;
  std::optional<AttentionModule> module(std::int64_t hidden) const override;
};

/// DeepSeek-V4's attention: one head of keys that are values as well, the last `window` tokens of
/// them as they are and those before compressed, `ratio` tokens into one entry. A ratio of 4 has
/// overlapping halves and an index that chooses entries; a larger one reads all entries; 0: the
/// window alone.
class CompressedAttention : public Mixer {
 public:
  std::int64_t heads = 0, head_dim = 0;
  std::int64_t q_rank = 0;
  std::int64_t out_groups = 0, out_rank = 0;  ///< Outputs pass a low rank in groups of heads.
  std::int64_t window = 0, ratio = 0;
  std::int64_t index_heads = 0, index_dim = 0, index_top = 0;  ///< 0: no index.

  std::string kind() const override { return "compressed_attention"; }
  std::vector<WeightMatrix> matrices(std::int64_t hidden) const override;
  std::int64_t vectors(std::int64_t hidden) const override;
  KeptBytes kept(std::int64_t hidden) const override;
  std::optional<AttentionModule> module(std::int64_t hidden) const override;

 private:
  /// Entries that a token enters: both overlapping halves with an index, else one.
  std::int64_t halves() const { return index_heads > 0 ? 2 : 1; }
};

MixerPointer parse_latent_attention(const JsonValue& json);
MixerPointer parse_compressed_attention(const JsonValue& json);

}  // namespace orrery
