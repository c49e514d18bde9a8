#pragma once

#include "sim/model/mixer.hpp"

namespace orrery {

/// Linear attention with a fixed decay a head (lightning attention, arXiv 2401.04658).
class Lightning : public Mixer {
 public:
  std::int64_t heads = 0, head_dim = 0;
  std::int64_t chunk = 0;  ///< Tokens that the scan takes at once.

  std::string kind() const override { return "lightning"; }
  std::vector<Matrix> matrices(std::int64_t hidden) const override;
  std::int64_t vectors(std::int64_t hidden) const override;
  KeptBytes kept() const override;
};

MixerPointer parse_lightning(const JsonValue& json);

}  // namespace orrery
