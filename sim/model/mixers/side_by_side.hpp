#pragma once

#include "sim/model/mixer.hpp"

namespace orrery {

/// Mixers that read the same input and whose outputs add up (Falcon-H1).
class SideBySide : public Mixer {
 public:
  std::vector<MixerPointer> mixers;

  std::string kind() const override { return "parallel"; }
  std::vector<WeightMatrix> matrices(std::int64_t hidden) const override;
  std::int64_t vectors(std::int64_t hidden) const override;
  KeptBytes kept(std::int64_t hidden) const override;
  /// Attention beside one mixer with a state, which becomes the layer's `mixer`.
  bool describe(Model& layer) const override;
};

MixerPointer parse_side_by_side(const JsonValue& json);

}  // namespace orrery
