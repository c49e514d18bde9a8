#include "calibration/host/head_start.hpp"

#include <algorithm>

namespace orrery::calibration {

HeadStart::Verdict HeadStart::judge(bool in_time, std::int64_t host_ns, Batch& batch) {
  if (in_time) {  // Also down again: a host that was slow once would cost every batch to come.
    misses_ = 0;
    delay_ns_ = std::clamp(2 * host_ns, shortest_ns, longest_ns);
    return Verdict::counts;
  }
  const bool longest = delay_ns_ == longest_ns;
  delay_ns_ = std::min(2 * std::max(delay_ns_, host_ns), longest_ns);
  constexpr int patience = 3;
  if (++misses_ < patience) return Verdict::again;
  if (batch.samples > 1 || batch.runs > 1) {
    int& shrunk = batch.samples > 1 ? batch.samples : batch.runs;
    shrunk /= 2;
    misses_ = 1;
    return Verdict::again;
  }
  return longest ? Verdict::hopeless : Verdict::again;
}

}  // namespace orrery::calibration
