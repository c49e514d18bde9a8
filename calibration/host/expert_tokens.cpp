#include "calibration/host/expert_tokens.hpp"

#include <cassert>

namespace orrery::calibration {

// Rounds where the running sum of shares crosses a whole token, so that the sum is exact.
std::vector<std::int64_t> expert_tokens(std::int64_t tokens, std::int64_t experts, bool skewed) {
  assert(experts >= 1 && tokens >= experts);
  double all = 0.0;
  for (std::int64_t r = 1; r <= experts; ++r) all += skewed ? 1.0 / static_cast<double>(r) : 1.0;
  const double free = static_cast<double>(tokens - experts);  // One is everybody's.
  std::vector<std::int64_t> counts;
  double share = 0.0;
  std::int64_t dealt = 0;
  for (std::int64_t r = 1; r <= experts; ++r) {
    share += (skewed ? 1.0 / static_cast<double>(r) : 1.0) / all;
    const std::int64_t up_to =
        r == experts ? tokens - experts : static_cast<std::int64_t>(share * free + 0.5);
    counts.push_back(1 + up_to - dealt);
    dealt = up_to;
  }
  return counts;
}

}  // namespace orrery::calibration
