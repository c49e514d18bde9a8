#pragma once

#include <vector>

#include "sim/layers/pass_cost.hpp"

namespace orrery {

/// Time on one GPU, without what runs beside it.
struct KernelTimes {
  Seconds busy;
  Seconds streaming;  ///< Of `busy`: kernels that memory bounds.
  Seconds idle;       ///< The GPU waits for its host.
};
/// The kernels of stretches.
KernelTimes kernels_of(const std::vector<Segment>& segments);

/// What kernels of length K lose beside a collective of length E that takes the share s of the
/// multiprocessors and b of the memory's bandwidth: while it lasts those that compute bounds run at
/// 1 - s of their speed, those that memory bounds (`streaming` of K) at 1 - b, so that they end
/// after min(K / (1 - l), K + l E), l being what the mixture loses,
/// 1 / (1 - l) = (1 - streaming / K) / (1 - s) + (streaming / K) / (1 - b). Where the GPU waits for
/// its host they lose that wait first.
Seconds lost_beside(const KernelTimes& kernels, const GroupCollective& collective);
/// The same, by the prices that decide it. `prices`: of those kernels, as far as they decide how
/// long their pass takes.
TimeByPrice lost_beside(const KernelTimes& kernels, const TimeByPrice& prices,
                        const GroupCollective& collective);

/// `kernels`, and beside them a collective that slows them down.
Segment beside(const std::vector<Segment>& kernels, const GroupCollective& collective);

}  // namespace orrery
