#include "sim/kernels/kernel_time.hpp"

#include <algorithm>
#include <vector>

namespace orrery {

double KernelRoofs::ops_per_byte() const { return bytes > Bytes{} ? flop.si() / bytes.si() : 0.0; }

double KernelRoofs::ridge() const { return peak.si() / bandwidth.si(); }

Seconds KernelRoofs::compute_time() const {
  return peak == FlopPerSecond{} ? Seconds{} : flop / peak;
}

Seconds KernelRoofs::memory_time() const { return bytes / bandwidth; }

Seconds KernelRoofs::least_time() const { return std::max(compute_time(), memory_time()); }

Bound bound_of(const KernelRoofs& roofs, Seconds time) {
  const bool is_short = time < 2.0 * Roofline{}.launch;
  if (is_short && roofs.least_time() < 0.5 * time) return Bound::latency;
  return roofs.memory_time() < roofs.compute_time() ? Bound::compute : Bound::memory;
}

}  // namespace orrery
