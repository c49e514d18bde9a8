#pragma once

#include "sim/model/mixer.hpp"

namespace orrery {

/// A gated delta net (arXiv 2412.06464): each value head keeps a matrix of key_dim x value_dim.
class GatedDeltaNet : public Mixer {
 public:
  std::int64_t key_heads = 0, value_heads = 0;
  std::int64_t key_dim = 0, value_dim = 0;
  std::int64_t conv = 0;  ///< Taps of the convolution of queries, keys and values.

  std::string kind() const override { return "gated_delta_net"; }
  std::vector<WeightMatrix> matrices(std::int64_t hidden) const override;
  std::int64_t vectors(std::int64_t hidden) const override;
  KeptBytes kept(std::int64_t hidden) const override;
  std::optional<StateWork> work(std::int64_t hidden, std::int64_t tp) const override;
  /// Channels of queries, keys and values.
  std::int64_t channels() const { return 2 * key_heads * key_dim + value_heads * value_dim; }
};

/// Kimi delta attention (arXiv 2510.26692): a gated delta net that decays each channel by itself.
class KimiDelta : public Mixer {
 public:
  std::int64_t heads = 0, head_dim = 0;
  std::int64_t conv = 0;
  bool full_rank_gate = false;  ///< Of the output; else it passes a rank of head_dim, as decays do.

  std::string kind() const override { return "kda"; }
  std::vector<WeightMatrix> matrices(std::int64_t hidden) const override;
  std::int64_t vectors(std::int64_t hidden) const override;
  KeptBytes kept(std::int64_t hidden) const override;
  std::optional<StateWork> work(std::int64_t hidden, std::int64_t tp) const override;
};

/// Linear attention with a fixed decay a head (lightning attention, arXiv 2401.04658).
class Lightning : public Mixer {
 public:
  std::int64_t heads = 0, head_dim = 0;
  std::int64_t chunk = 0;  ///< Tokens that the scan takes at once.

  std::string kind() const override { return "lightning"; }
  std::vector<WeightMatrix> matrices(std::int64_t hidden) const override;
  std::int64_t vectors(std::int64_t hidden) const override;
  KeptBytes kept(std::int64_t hidden) const override;
  std::optional<StateWork> work(std::int64_t hidden, std::int64_t tp) const override;
};

MixerPointer parse_gated_delta_net(const JsonValue& json);
MixerPointer parse_kimi_delta(const JsonValue& json);
MixerPointer parse_lightning(const JsonValue& json);

}  // namespace orrery
