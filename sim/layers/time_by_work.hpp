#pragma once

#include <array>

#include "sim/core/units.hpp"

namespace orrery {

/// What a GPU does during a pass, collectives left out.
enum class Work {
  products,         ///< Matrix products of weights.
  expert_products,  ///< The same of experts, many in one kernel.
  attention,        ///< Fused, or its batched products.
  streaming,        ///< Kernels that memory bounds.
  host,             ///< Nothing: it waits for its host to launch kernels.
  slowed,           ///< What kernels lose to collectives beside them.
};
inline constexpr std::size_t kinds_of_work = 6;

/// A time, cut up by what the GPU does in it.
class TimeByWork {
 public:
  Seconds& at(Work work) { return parts_[static_cast<std::size_t>(work)]; }
  Seconds at(Work work) const { return parts_[static_cast<std::size_t>(work)]; }
  /// `share` of `more`.
  void add(const TimeByWork& more, double share = 1.0) {
    for (std::size_t work = 0; work < kinds_of_work; ++work)
      parts_[work] += share * more.parts_[work];
  }
  Seconds total() const {
    Seconds sum;
    for (const Seconds part : parts_) sum += part;
    return sum;
  }

 private:
  std::array<Seconds, kinds_of_work> parts_{};
};

}  // namespace orrery
