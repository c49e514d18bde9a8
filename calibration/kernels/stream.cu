#include <algorithm>
#include <cmath>

#include "calibration/kernels/launch.hpp"
#include "calibration/kernels/stream.cuh"
#include "calibration/kernels/warp_matrix.cuh"

namespace orrery::calibration {

cudaError_t launch_copy(const void* from, void* to, std::int64_t bytes, cudaStream_t stream) {
  copy_words<<<stream_blocks, stream_threads, 0, stream>>>(static_cast<const uint4*>(from),
                                                           static_cast<uint4*>(to), bytes / 16);
  return cudaGetLastError();
}

cudaError_t launch_read(const void* from, std::int64_t bytes, unsigned* result,
                        cudaStream_t stream) {
  read_words<<<stream_blocks, stream_threads, 0, stream>>>(static_cast<const uint4*>(from),
                                                           bytes / 16, result);
  return cudaGetLastError();
}

cudaError_t launch_triad(const float* a, const float* b, float* c, std::int64_t count,
                         cudaStream_t stream) {
  triad<<<stream_blocks, stream_threads, 0, stream>>>(reinterpret_cast<const float4*>(a),
                                                      reinterpret_cast<const float4*>(b),
                                                      reinterpret_cast<float4*>(c), count / 4);
  return cudaGetLastError();
}

cudaError_t launch_rms_norm(const std::uint16_t* x, const std::uint16_t* gain, std::uint16_t* y,
                            std::int64_t rows, int width, cudaStream_t stream) {
  rms_norm<<<static_cast<unsigned>(rows), stream_threads, 0, stream>>>(x, gain, y, width);
  return cudaGetLastError();
}

cudaError_t launch_rms_norm_backward(const std::uint16_t* x, const std::uint16_t* gain,
                                     const std::uint16_t* dy, std::uint16_t* dx, float* dgain,
                                     float* partial, std::int64_t rows, int width,
                                     cudaStream_t stream) {
  const int shared = width * static_cast<int>(sizeof(float));
  if (const cudaError_t error = cudaFuncSetAttribute(
          rms_norm_backward, cudaFuncAttributeMaxDynamicSharedMemorySize, shared))
    return error;
  const int blocks = static_cast<int>(std::min<std::int64_t>(rows, rms_norm_partials));
  rms_norm_backward<<<blocks, stream_threads, static_cast<std::size_t>(shared), stream>>>(
      x, gain, dy, dx, partial, static_cast<int>(rows), width);
  sum_columns<<<(width + stream_threads - 1) / stream_threads, stream_threads, 0, stream>>>(
      partial, dgain, blocks, width);
  return cudaGetLastError();
}

cudaError_t launch_swiglu(const std::uint16_t* in, std::uint16_t* out, std::int64_t rows, int width,
                          cudaStream_t stream) {
  swiglu<<<stream_blocks, stream_threads, 0, stream>>>(in, out, rows, width);
  return cudaGetLastError();
}

cudaError_t launch_swiglu_backward(const std::uint16_t* in, const std::uint16_t* dout,
                                   std::uint16_t* din, std::int64_t rows, int width,
                                   cudaStream_t stream) {
  swiglu_backward<<<stream_blocks, stream_threads, 0, stream>>>(in, dout, din, rows, width);
  return cudaGetLastError();
}

cudaError_t launch_rotate(const std::uint16_t* x, std::int64_t x_stride, std::uint16_t* y,
                          std::int64_t y_stride, std::int64_t rows, int width,
                          const Rotation& rotation, cudaStream_t stream) {
  rotate<<<stream_blocks, stream_threads, 0, stream>>>(
      x, x_stride, reinterpret_cast<const float2*>(rotation.turns), y, y_stride, rows, width,
      rotation.sequence, rotation.head_dim, rotation.direction);
  return cudaGetLastError();
}

cudaError_t launch_cross_entropy(const std::uint16_t* logits, const int* targets, float* loss,
                                 std::uint16_t* gradient, std::int64_t rows, int width, float scale,
                                 cudaStream_t stream) {
  cross_entropy<<<static_cast<unsigned>(rows), stream_threads, 0, stream>>>(logits, targets, loss,
                                                                            gradient, width, scale);
  return cudaGetLastError();
}

cudaError_t launch_permute(const std::uint16_t* x, const int* index, std::uint16_t* y,
                           std::int64_t rows, int width, cudaStream_t stream) {
  permute_rows<<<static_cast<unsigned>(rows), stream_threads, 0, stream>>>(x, index, y, width);
  return cudaGetLastError();
}

cudaError_t launch_adam(float* master, float* first, float* second, const float* gradient,
                        std::uint16_t* weight, std::int64_t count, const AdamStep& step,
                        cudaStream_t stream) {
  const AdamRates rates{step.rate,
                        step.beta1,
                        step.beta2,
                        step.epsilon,
                        1.0f - static_cast<float>(std::pow(double{step.beta1}, step.step)),
                        1.0f - static_cast<float>(std::pow(double{step.beta2}, step.step))};
  adam<<<stream_blocks, stream_threads, 0, stream>>>(master, first, second, gradient, weight, count,
                                                     rates);
  return cudaGetLastError();
}

cudaError_t launch_add(const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* sum,
                       std::int64_t count, cudaStream_t stream) {
  add<<<stream_blocks, stream_threads, 0, stream>>>(a, b, sum, count);
  return cudaGetLastError();
}

cudaError_t launch_widen(const std::uint16_t* from, float* to, std::int64_t count,
                         cudaStream_t stream) {
  widen<<<stream_blocks, stream_threads, 0, stream>>>(from, to, count);
  return cudaGetLastError();
}

cudaError_t launch_scatter_add(const std::uint16_t* dy, const int* index, float* table,
                               std::int64_t rows, int width, cudaStream_t stream) {
  scatter_add<<<static_cast<unsigned>(rows), stream_threads, 0, stream>>>(dy, index, table, width);
  return cudaGetLastError();
}

}  // namespace orrery::calibration
