#pragma once

#include "sim/model/mixer.hpp"

namespace orrery {

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
  std::vector<Matrix> matrices(std::int64_t hidden) const override;
  std::int64_t vectors(std::int64_t hidden) const override;
  KeptBytes kept() const override;

 private:
  /// Entries that a token enters: both overlapping halves with an index, else one.
  std::int64_t halves() const { return index_heads > 0 ? 2 : 1; }
};

MixerPointer parse_compressed_attention(const JsonValue& json);

}  // namespace orrery
