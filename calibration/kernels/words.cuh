#pragma once

// bf16 as it lies in memory, and sums over a warp and a block.
//
// These files are plain CUDA C++ without its headers' number types, so that tests can also compile
// them for the host and run them thread by thread (tests/support/thread_block.hpp).

#include <cstdint>

namespace orrery::calibration {

/// Two bf16 are one word, the first in the low half; a bf16 is the upper half of a float.
__device__ inline float low_bf16(std::uint32_t word) { return __uint_as_float(word << 16); }
__device__ inline float high_bf16(std::uint32_t word) {
  return __uint_as_float(word & 0xffff0000u);
}

#ifdef __CUDACC__
/// Rounded to nearest, ties to even.
__device__ inline std::uint32_t pack_bf16(float low, float high) {
  std::uint32_t word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

/// The shared memory that the launch asked for, of which a kernel has one array.
template <class T>
__device__ inline T* dynamic_shared() {
  extern __shared__ uint4 orrery_shared[];
  return reinterpret_cast<T*>(orrery_shared);
}
#endif

/// 16 bytes, which one thread moves at once.
struct Eight {
  float v[8];
};

__device__ inline Eight load_eight(const std::uint16_t* from) {
  const uint4 words = *reinterpret_cast<const uint4*>(from);
  return {{low_bf16(words.x), high_bf16(words.x), low_bf16(words.y), high_bf16(words.y),
           low_bf16(words.z), high_bf16(words.z), low_bf16(words.w), high_bf16(words.w)}};
}

__device__ inline void store_eight(std::uint16_t* to, const Eight& e) {
  uint4 words;
  words.x = pack_bf16(e.v[0], e.v[1]);
  words.y = pack_bf16(e.v[2], e.v[3]);
  words.z = pack_bf16(e.v[4], e.v[5]);
  words.w = pack_bf16(e.v[6], e.v[7]);
  *reinterpret_cast<uint4*>(to) = words;
}

constexpr unsigned whole_warp = 0xffffffffu;

/// Blocks of stream kernels have this many threads.
constexpr int stream_threads = 256;

/// The sum over the block, in every thread. All threads call it.
__device__ inline float block_sum(float value) {
  __shared__ float of_warp[stream_threads / 32];
  for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_xor_sync(whole_warp, value, lanes);
  __syncthreads();  // Readers of an earlier sum are done.
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0.0f;
  for (int warp = 0; warp < stream_threads / 32; ++warp) sum += of_warp[warp];
  return sum;
}

__device__ inline float block_max(float value) {
  __shared__ float of_warp[stream_threads / 32];
  for (int lanes = 16; lanes > 0; lanes /= 2)
    value = fmaxf(value, __shfl_xor_sync(whole_warp, value, lanes));
  __syncthreads();
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  float most = of_warp[0];
  for (int warp = 1; warp < stream_threads / 32; ++warp) most = fmaxf(most, of_warp[warp]);
  return most;
}

}  // namespace orrery::calibration
