#pragma once

#include "sim/model/mixer.hpp"

namespace orrery {

/// A state space of heads with one decay each (Mamba-2, arXiv 2405.21060).
class Mamba2 : public Mixer {
 public:
  std::int64_t heads = 0, head_dim = 0;
  std::int64_t state = 0;   ///< Channels of the state for each of a head's.
  std::int64_t groups = 0;  ///< Of heads that share their inputs and outputs of the state.
  std::int64_t conv = 0;
  std::int64_t chunk = 0;  ///< Tokens that the scan takes at once.
  bool norm = true;        ///< A gated norm before the last product.

  std::string kind() const override { return "mamba2"; }
  std::vector<WeightMatrix> matrices(std::int64_t hidden) const override;
  std::int64_t vectors(std::int64_t hidden) const override;
  KeptBytes kept(std::int64_t hidden) const override;
  std::optional<StateWork> work(std::int64_t hidden, std::int64_t tp) const override;
  std::int64_t inner() const { return heads * head_dim; }
  std::int64_t convolved() const { return inner() + 2 * groups * state; }
};

/// A selective state space with a decay for each channel and state (Mamba, arXiv 2312.00752).
class Mamba1 : public Mixer {
 public:
  std::int64_t inner = 0, state = 0;
  std::int64_t time_rank = 0;  ///< Rank of the time steps' projection.
  std::int64_t conv = 0;
  bool norms = false;  ///< Of time steps, inputs and outputs of the state (Jamba).

  std::string kind() const override { return "mamba1"; }
  std::vector<WeightMatrix> matrices(std::int64_t hidden) const override;
  std::int64_t vectors(std::int64_t hidden) const override;
  KeptBytes kept(std::int64_t hidden) const override;
  std::optional<StateWork> work(std::int64_t hidden, std::int64_t tp) const override;
};

MixerPointer parse_mamba2(const JsonValue& json);
MixerPointer parse_mamba1(const JsonValue& json);

}  // namespace orrery
