#pragma once

// The door to the kernels for code that a C++ compiler compiles. Pointers are the GPU's; launches
// are asynchronous on `stream`; what comes back is the launch's error.

#include <cuda_runtime_api.h>

#include <cstdint>

namespace orrery::calibration {

/// Blocks of kernels that stride over their elements: several for each multiprocessor of any GPU.
constexpr int stream_blocks = 4096;

enum class Format { bf16, fp16, fp32, e4m3, e5m2 };
constexpr int bytes_of(Format format) {
  return format == Format::fp32 ? 4 : format == Format::bf16 || format == Format::fp16 ? 2 : 1;
}

/// Element i becomes random_value(seed, i) * scale, rounded to `format`.
cudaError_t launch_fill(void* to, Format format, std::int64_t count, std::uint64_t seed,
                        float scale, cudaStream_t stream);
/// Adds to `result` how many of `count` elements are no finite numbers. bf16, fp16 or fp32.
cudaError_t launch_count_not_finite(const void* from, Format format, std::int64_t count,
                                    unsigned long long* result, cudaStream_t stream);

/// Does nothing.
cudaError_t launch_empty(cudaStream_t stream);
/// One block of one thread that takes `ns`.
cudaError_t launch_delay(std::int64_t ns, cudaStream_t stream);
/// `blocks` blocks that fill a multiprocessor each (with all of its shared memory) until `*stop`,
/// in mapped host memory, is not 0, or for `ns` at most.
cudaError_t launch_busy(int blocks, int shared_bytes, const volatile int* stop, std::int64_t ns,
                        cudaStream_t stream);

// Streaming kernels: calibration/kernels/stream.cuh says what each does.
cudaError_t launch_copy(const void* from, void* to, std::int64_t bytes, cudaStream_t stream);
cudaError_t launch_read(const void* from, std::int64_t bytes, unsigned* result,
                        cudaStream_t stream);
cudaError_t launch_triad(const float* a, const float* b, float* c, std::int64_t count,
                         cudaStream_t stream);
cudaError_t launch_rms_norm(const std::uint16_t* x, const std::uint16_t* gain, std::uint16_t* y,
                            std::int64_t rows, int width, cudaStream_t stream);
/// `partial` holds rms_norm_partials x width floats.
constexpr int rms_norm_partials = 512;
cudaError_t launch_rms_norm_backward(const std::uint16_t* x, const std::uint16_t* gain,
                                     const std::uint16_t* dy, std::uint16_t* dx, float* dgain,
                                     float* partial, std::int64_t rows, int width,
                                     cudaStream_t stream);
cudaError_t launch_swiglu(const std::uint16_t* in, std::uint16_t* out, std::int64_t rows, int width,
                          cudaStream_t stream);
cudaError_t launch_swiglu_backward(const std::uint16_t* in, const std::uint16_t* dout,
                                   std::uint16_t* din, std::int64_t rows, int width,
                                   cudaStream_t stream);
/// `turns`: pairs of cosine and sine, [sequence, head_dim / 2].
struct Rotation {
  const float* turns;
  int sequence, head_dim;
  float direction;
};
cudaError_t launch_rotate(const std::uint16_t* x, std::int64_t x_stride, std::uint16_t* y,
                          std::int64_t y_stride, std::int64_t rows, int width,
                          const Rotation& rotation, cudaStream_t stream);
cudaError_t launch_cross_entropy(const std::uint16_t* logits, const int* targets, float* loss,
                                 std::uint16_t* gradient, std::int64_t rows, int width, float scale,
                                 cudaStream_t stream);
cudaError_t launch_permute(const std::uint16_t* x, const int* index, std::uint16_t* y,
                           std::int64_t rows, int width, cudaStream_t stream);
struct AdamStep {
  float rate, beta1, beta2, epsilon;
  int step;  ///< The first is 1.
};
cudaError_t launch_adam(float* master, float* first, float* second, const float* gradient,
                        std::uint16_t* weight, std::int64_t count, const AdamStep& step,
                        cudaStream_t stream);
cudaError_t launch_add(const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* sum,
                       std::int64_t count, cudaStream_t stream);
/// Widens bf16 to fp32: to = from; `count` is a multiple of 8.
cudaError_t launch_widen(const std::uint16_t* from, float* to, std::int64_t count,
                         cudaStream_t stream);
cudaError_t launch_scatter_add(const std::uint16_t* dy, const int* index, float* table,
                               std::int64_t rows, int width, cudaStream_t stream);

/// calibration/kernels/attention.cuh says how they lie. Forward uses q, k, v, o and lse.
struct AttentionArrays {
  const std::uint16_t *q, *k, *v;
  std::uint16_t* o;
  float* lse;
  const std::uint16_t* d_o;
  float *delta, *dq_sum;
  std::uint16_t *dq, *dk, *dv;
};
struct AttentionSizes {
  int batch, sequence, heads, kv_heads, head_dim;  ///< head_dim 64 or 128.
  std::int64_t v_stride;
};
cudaError_t launch_attention_forward(const AttentionArrays& arrays, const AttentionSizes& sizes,
                                     cudaStream_t stream);
cudaError_t launch_attention_backward(const AttentionArrays& arrays, const AttentionSizes& sizes,
                                      cudaStream_t stream);

}  // namespace orrery::calibration
