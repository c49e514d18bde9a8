#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "calibration/kernels/launch.hpp"
#include "calibration/kernels/random_value.hpp"

namespace orrery::calibration {
namespace {

constexpr int threads = 256;

template <class T>
__global__ void fill(T* to, std::int64_t count, std::uint64_t seed, float scale) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step)
    to[i] = T(random_value(seed, static_cast<std::uint64_t>(i)) * scale);
}

template <class T>
__global__ void count_not_finite(const T* from, std::int64_t count, unsigned long long* result) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  unsigned long long found = 0;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step)
    found += !isfinite(static_cast<float>(from[i]));
  if (found) atomicAdd(result, found);
}

__global__ void empty() {}

__device__ std::int64_t now_ns() {
  std::int64_t ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

__global__ void delay(std::int64_t ns) {
  const std::int64_t end = now_ns() + ns;
  while (now_ns() < end) {
  }
}

__global__ void busy(const volatile int* stop, std::int64_t ns) {
  const std::int64_t end = now_ns() + ns;
  while (*stop == 0 && now_ns() < end) {
  }
}

template <class T>
cudaError_t fill_as(void* to, std::int64_t count, std::uint64_t seed, float scale,
                    cudaStream_t stream) {
  fill<<<stream_blocks, threads, 0, stream>>>(static_cast<T*>(to), count, seed, scale);
  return cudaGetLastError();
}

template <class T>
cudaError_t count_as(const void* from, std::int64_t count, unsigned long long* result,
                     cudaStream_t stream) {
  count_not_finite<<<stream_blocks, threads, 0, stream>>>(static_cast<const T*>(from), count,
                                                          result);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_fill(void* to, Format format, std::int64_t count, std::uint64_t seed,
                        float scale, cudaStream_t stream) {
  switch (format) {
    case Format::bf16:
      return fill_as<__nv_bfloat16>(to, count, seed, scale, stream);
    case Format::fp16:
      return fill_as<__half>(to, count, seed, scale, stream);
    case Format::fp32:
      return fill_as<float>(to, count, seed, scale, stream);
    case Format::e4m3:
      return fill_as<__nv_fp8_e4m3>(to, count, seed, scale, stream);
    case Format::e5m2:
      return fill_as<__nv_fp8_e5m2>(to, count, seed, scale, stream);
  }
  return cudaErrorInvalidValue;
}

cudaError_t launch_count_not_finite(const void* from, Format format, std::int64_t count,
                                    unsigned long long* result, cudaStream_t stream) {
  switch (format) {
    case Format::bf16:
      return count_as<__nv_bfloat16>(from, count, result, stream);
    case Format::fp16:
      return count_as<__half>(from, count, result, stream);
    case Format::fp32:
      return count_as<float>(from, count, result, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

cudaError_t launch_empty(cudaStream_t stream) {
  empty<<<1, 32, 0, stream>>>();
  return cudaGetLastError();
}

cudaError_t launch_delay(std::int64_t ns, cudaStream_t stream) {
  delay<<<1, 1, 0, stream>>>(ns);
  return cudaGetLastError();
}

cudaError_t launch_busy(int blocks, int shared_bytes, const volatile int* stop, std::int64_t ns,
                        cudaStream_t stream) {
  if (const cudaError_t error =
          cudaFuncSetAttribute(busy, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes))
    return error;
  busy<<<blocks, 1, static_cast<std::size_t>(shared_bytes), stream>>>(stop, ns);
  return cudaGetLastError();
}

}  // namespace orrery::calibration
