#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define ORRERY_BOTH __host__ __device__
#else
#define ORRERY_BOTH
#endif

namespace orrery::calibration {

/// The i-th value of stream `seed`, the same on the host and on the GPU, bit for bit: near to
/// normal with variance 1 (the sum of four uniform 16-bit numbers), within +-3.47. Measurements run
/// on random data, as zeros toggle no wires and let a GPU clock higher than work does.
ORRERY_BOTH inline float random_value(std::uint64_t seed, std::uint64_t i) {
  // splitmix64 (Steele, Lea and Flood, OOPSLA 2014).
  std::uint64_t z = seed * 0xd1342543de82ef95u + (i + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  const int sum =
      static_cast<int>((z & 0xffff) + ((z >> 16) & 0xffff) + ((z >> 32) & 0xffff) + (z >> 48));
  // The sum has mean 4 (2^16 - 1) / 2 and variance 4 (2^32 - 1) / 12: sqrt(3) / 2^16 makes it 1.
  // Half steps are kept by doubling; every factor is exact or rounded once.
  return static_cast<float>(2 * sum - 262140) * (1.7320508f / 131072.0f);
}

}  // namespace orrery::calibration
