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
  std::vector<Matrix> matrices(std::int64_t hidden) const override;
  std::int64_t vectors(std::int64_t hidden) const override;
  KeptBytes kept() const override;
};

MixerPointer parse_latent_attention(const JsonValue& json);

}  // namespace orrery
