#include "calibration/kernels/attention.cuh"
#include "calibration/kernels/launch.hpp"

namespace orrery::calibration {
namespace {

// Beyond 48 KiB a kernel must ask for its shared memory; asking again costs nothing to speak of.
template <class Kernel>
cudaError_t request_shared(Kernel kernel, int bytes) {
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}

template <int D>
cudaError_t forward(const AttentionArrays& a, const AttentionSizes& s, cudaStream_t stream) {
  constexpr int bytes = ForwardTiles::shared_bytes<D>();
  if (const cudaError_t error = request_shared(attention_forward<D>, bytes)) return error;
  const dim3 grid(s.sequence / ForwardTiles::queries, s.heads, s.batch);
  attention_forward<D><<<grid, ForwardTiles::threads, bytes, stream>>>(
      a.q, a.k, a.v, a.o, a.lse, s.v_stride, s.sequence, s.heads, s.kv_heads);
  return cudaGetLastError();
}

template <int D>
cudaError_t backward(const AttentionArrays& a, const AttentionSizes& s, cudaStream_t stream) {
  constexpr int bytes = BackwardTiles::shared_bytes<D>();
  if (const cudaError_t error = request_shared(attention_backward<D>, bytes)) return error;
  const std::int64_t tokens = static_cast<std::int64_t>(s.batch) * s.sequence;
  const std::int64_t count = tokens * s.heads * D;
  if (const cudaError_t error =
          cudaMemsetAsync(a.dq_sum, 0, static_cast<std::size_t>(count) * sizeof(float), stream))
    return error;
  const std::int64_t warps_a_block = stream_threads / 32;
  attention_delta<D>
      <<<static_cast<unsigned>((tokens * s.heads + warps_a_block - 1) / warps_a_block),
         stream_threads, 0, stream>>>(a.o, a.d_o, a.delta, tokens, s.sequence, s.heads);
  const dim3 grid(s.sequence / BackwardTiles::keys, s.kv_heads, s.batch);
  attention_backward<D><<<grid, BackwardTiles::threads, bytes, stream>>>(
      a.q, a.k, a.v, a.d_o, a.lse, a.delta, a.dq_sum, a.dk, a.dv, s.v_stride, s.sequence, s.heads,
      s.kv_heads);
  scale_to_bf16<<<stream_blocks, stream_threads, 0, stream>>>(a.dq_sum, a.dq, count,
                                                              D == 64 ? 0.125f : 0.0883883476f);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_attention_forward(const AttentionArrays& arrays, const AttentionSizes& sizes,
                                     cudaStream_t stream) {
  return sizes.head_dim == 64 ? forward<64>(arrays, sizes, stream)
                              : forward<128>(arrays, sizes, stream);
}

cudaError_t launch_attention_backward(const AttentionArrays& arrays, const AttentionSizes& sizes,
                                      cudaStream_t stream) {
  return sizes.head_dim == 64 ? backward<64>(arrays, sizes, stream)
                              : backward<128>(arrays, sizes, stream);
}

}  // namespace orrery::calibration
