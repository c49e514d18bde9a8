#pragma once

#include "sim/model/mixer.hpp"

namespace orrery {

/// A convolution over the last tokens of each channel, between two gates (LFM2).
class ShortConvolution : public Mixer {
 public:
  std::int64_t taps = 0;  ///< Tokens that it sees, with the last.
  bool bias = false;      ///< Of the convolution and of both products.

  std::string kind() const override { return "short_convolution"; }
  std::vector<WeightMatrix> matrices(std::int64_t hidden) const override;
  std::int64_t vectors(std::int64_t hidden) const override;
  KeptBytes kept(std::int64_t hidden) const override;
  std::optional<StateWork> work(std::int64_t hidden, std::int64_t tp) const override;
};

MixerPointer parse_short_convolution(const JsonValue& json);

}  // namespace orrery
