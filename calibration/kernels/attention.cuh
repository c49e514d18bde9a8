#pragma once

// Causal attention with grouped keys, forward and backward, in tiles that never leave the
// multiprocessor (Dao, arXiv 2307.08691), on the matrix instructions that every GPU since Ampere
// has. It is no match for kernels that are tuned to one generation; records say which code they
// timed.
//
// Queries, outputs [batch, sequence, heads, D]; keys, values [batch, sequence, kv_heads, D]; bf16.
// Tokens of the values (and of their gradients) begin every `v_stride` elements, so that they may
// stay where a fused projection left them.
// The sequence is a multiple of 128. Statistics are [batch, heads, sequence] of fp32: `lse` is
// log2 sum_j 2^(s_ij), with s = q k / sqrt(D) / ln 2.

#include "calibration/kernels/warp_matrix.cuh"
#include "calibration/kernels/words.cuh"

namespace orrery::calibration {

constexpr float log2_e = 1.44269504088896f;

template <int D>
__device__ inline float score_scale() {
  return D == 64 ? 0.125f : 0.0883883476483184f;  // 1 / sqrt(D), D 64 or 128.
}

struct ForwardTiles {
  static constexpr int queries = 128, keys = 64, threads = 256;
  /// Two stages of keys and values; the queries pass through the same memory first.
  template <int D>
  static constexpr int shared_bytes() {
    return 2 * 2 * keys * D * 2;
  }
};

/// Grid: sequence / 128, heads, batch. A warp has 16 queries.
template <int D>
__global__ void __launch_bounds__(ForwardTiles::threads)
    attention_forward(const std::uint16_t* q, const std::uint16_t* k, const std::uint16_t* v,
                      std::uint16_t* o, float* lse, std::int64_t v_stride, int sequence, int heads,
                      int kv_heads) {
  constexpr int queries = ForwardTiles::queries, keys = ForwardTiles::keys;
  std::uint16_t* const shared = dynamic_shared<std::uint16_t>();
  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const int tile = gridDim.x - 1 - blockIdx.x;  // The longest rows begin first.
  const int head = blockIdx.y;
  const std::int64_t q_stride = static_cast<std::int64_t>(heads) * D;
  const std::int64_t k_stride = static_cast<std::int64_t>(kv_heads) * D;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.z) * sequence;
  const std::int64_t q_at = (first + tile * queries) * q_stride + head * D;
  const int kv_head = head / (heads / kv_heads);

  std::uint32_t q_parts[D / 16][4];
  load_tile<D>(shared, q + q_at, q_stride, queries);
  wait_for_copies();
  __syncthreads();
  for (int i = 0; i < D / 16; ++i) load_a<D>(q_parts[i], shared, 16 * warp, 16 * i);
  __syncthreads();

  const auto load_stage = [&](int j) {
    std::uint16_t* const stage = shared + j % 2 * 2 * keys * D;
    const std::int64_t token = first + static_cast<std::int64_t>(j) * keys;
    load_tile<D>(stage, k + token * k_stride + kv_head * D, k_stride, keys);
    load_tile<D>(stage + keys * D, v + token * v_stride + kv_head * D, v_stride, keys);
  };

  float sum[D / 8][4] = {};
  float most[2] = {-3.0e38f, -3.0e38f}, total[2] = {0.0f, 0.0f};
  const float scale = score_scale<D>() * log2_e;
  const int row = tile * queries + 16 * warp + g;  // And row + 8.
  const int stages = (tile + 1) * (queries / keys);
  load_stage(0);
  for (int j = 0; j < stages; ++j) {
    wait_for_copies();
    __syncthreads();  // This stage is here, and the other one is free.
    if (j + 1 < stages) load_stage(j + 1);
    const std::uint16_t* const k_tile = shared + j % 2 * 2 * keys * D;
    const std::uint16_t* const v_tile = k_tile + keys * D;

    float s[keys / 8][4] = {};
#pragma unroll
    for (int i = 0; i < D / 16; ++i)
#pragma unroll
      for (int n = 0; n < keys / 16; ++n) {
        std::uint32_t b[4];
        load_b_transposed<D>(b, k_tile, 16 * i, 16 * n);
        multiply_add(s[2 * n], q_parts[i], b[0], b[1]);
        multiply_add(s[2 * n + 1], q_parts[i], b[2], b[3]);
      }
    const bool crosses_diagonal = (j + 1) * keys > tile * queries + 16 * warp;
#pragma unroll
    for (int n = 0; n < keys / 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const bool hidden = j * keys + 8 * n + 2 * t + e % 2 > row + e / 2 * 8;
        s[n][e] = crosses_diagonal && hidden ? -3.0e38f : s[n][e] * scale;
      }

#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float here = most[half];
      for (int n = 0; n < keys / 8; ++n)
        here = fmaxf(here, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
      here = fmaxf(here, __shfl_xor_sync(whole_warp, here, 1));
      here = fmaxf(here, __shfl_xor_sync(whole_warp, here, 2));
      const float shrink = exp2f(most[half] - here);
      most[half] = here;
      total[half] *= shrink;
      for (int n = 0; n < D / 8; ++n) {
        sum[n][2 * half] *= shrink;
        sum[n][2 * half + 1] *= shrink;
      }
      for (int n = 0; n < keys / 8; ++n)
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          s[n][e] = exp2f(s[n][e] - here);
          total[half] += s[n][e];
        }
    }

#pragma unroll
    for (int i = 0; i < keys / 16; ++i) {
      const std::uint32_t p[4] = {
          pack_bf16(s[2 * i][0], s[2 * i][1]), pack_bf16(s[2 * i][2], s[2 * i][3]),
          pack_bf16(s[2 * i + 1][0], s[2 * i + 1][1]), pack_bf16(s[2 * i + 1][2], s[2 * i + 1][3])};
#pragma unroll
      for (int n = 0; n < D / 16; ++n) {
        std::uint32_t b[4];
        load_b<D>(b, v_tile, 16 * i, 16 * n);
        multiply_add(sum[2 * n], p, b[0], b[1]);
        multiply_add(sum[2 * n + 1], p, b[2], b[3]);
      }
    }
  }

  const std::int64_t statistics = (static_cast<std::int64_t>(blockIdx.z) * heads + head) * sequence;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    total[half] += __shfl_xor_sync(whole_warp, total[half], 1);
    total[half] += __shfl_xor_sync(whole_warp, total[half], 2);
    const std::int64_t at = q_at + (16 * warp + g + 8 * half) * q_stride + 2 * t;
    for (int n = 0; n < D / 8; ++n)
      *reinterpret_cast<std::uint32_t*>(o + at + 8 * n) =
          pack_bf16(sum[n][2 * half] / total[half], sum[n][2 * half + 1] / total[half]);
    if (t == 0) lse[statistics + row + 8 * half] = most[half] + log2f(total[half]);
  }
}

/// delta = sum_d o do of each query: a warp a query, stream_threads a block.
template <int D>
__global__ void attention_delta(const std::uint16_t* o, const std::uint16_t* d_o, float* delta,
                                std::int64_t tokens, int sequence, int heads) {
  const std::int64_t i =
      (static_cast<std::int64_t>(blockIdx.x) * stream_threads + threadIdx.x) / 32;
  if (i >= tokens * heads) return;  // Whole warps leave.
  const int lane = threadIdx.x % 32;
  float sum = 0.0f;
  for (int d = 2 * lane; d < D; d += 64) {
    const std::uint32_t a = *reinterpret_cast<const std::uint32_t*>(o + i * D + d);
    const std::uint32_t b = *reinterpret_cast<const std::uint32_t*>(d_o + i * D + d);
    sum += low_bf16(a) * low_bf16(b) + high_bf16(a) * high_bf16(b);
  }
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(whole_warp, sum, lanes);
  const std::int64_t token = i / heads, head = i % heads;
  if (lane == 0) delta[(token / sequence * heads + head) * sequence + token % sequence] = sum;
}

struct BackwardTiles {
  static constexpr int queries = 64, keys = 64, threads = 128;
  /// Keys, values, queries and output gradients; score gradients; two statistics a query.
  template <int D>
  static constexpr int shared_bytes() {
    return 4 * keys * D * 2 + keys * queries * 2 + 2 * queries * 4;
  }
};

/// dk and dv, and what this block's keys add to the fp32 `dq` (zero before; without the score
/// scale, which scale_to_bf16 applies).
/// Grid: sequence / 64, kv_heads, batch. A warp has 16 keys. Scores stand transposed, a row a key,
/// so that probabilities and score gradients are at once the left factors of dv and dk.
template <int D>
__global__ void __launch_bounds__(BackwardTiles::threads)
    attention_backward(const std::uint16_t* q, const std::uint16_t* k, const std::uint16_t* v,
                       const std::uint16_t* d_o, const float* lse, const float* delta, float* dq,
                       std::uint16_t* dk, std::uint16_t* dv, std::int64_t v_stride, int sequence,
                       int heads, int kv_heads) {
  constexpr int queries = BackwardTiles::queries, keys = BackwardTiles::keys;
  std::uint16_t* const k_tile = dynamic_shared<std::uint16_t>();
  std::uint16_t* const v_tile = k_tile + keys * D;
  std::uint16_t* const q_tile = v_tile + keys * D;
  std::uint16_t* const o_tile = q_tile + queries * D;
  std::uint16_t* const s_tile = o_tile + queries * D;  // [keys, queries]
  float* const lse_tile = reinterpret_cast<float*>(s_tile + keys * queries);
  float* const delta_tile = lse_tile + queries;

  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const std::int64_t q_stride = static_cast<std::int64_t>(heads) * D;
  const std::int64_t k_stride = static_cast<std::int64_t>(kv_heads) * D;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.z) * sequence;
  const int key_tile = blockIdx.x;
  const std::int64_t token = first + key_tile * keys;
  const std::int64_t k_at = token * k_stride + blockIdx.y * D;
  const std::int64_t v_at = token * v_stride + blockIdx.y * D;
  const float scale = score_scale<D>() * log2_e;

  load_tile<D>(k_tile, k + k_at, k_stride, keys);
  load_tile<D>(v_tile, v + v_at, v_stride, keys);

  float dk_sum[D / 8][4] = {}, dv_sum[D / 8][4] = {};
  const int group = heads / kv_heads;
  for (int head = blockIdx.y * group; head < static_cast<int>(blockIdx.y + 1) * group; ++head)
    for (int i = key_tile; i < sequence / queries; ++i) {
      const std::int64_t q_at =
          (first + static_cast<std::int64_t>(i) * queries) * q_stride + head * D;
      const std::int64_t statistics =
          (static_cast<std::int64_t>(blockIdx.z) * heads + head) * sequence + i * queries;
      __syncthreads();  // All have read the last queries.
      load_tile<D>(q_tile, q + q_at, q_stride, queries);
      load_tile<D>(o_tile, d_o + q_at, q_stride, queries);
      if (threadIdx.x < queries) {
        lse_tile[threadIdx.x] = lse[statistics + threadIdx.x];
        delta_tile[threadIdx.x] = delta[statistics + threadIdx.x];
      }
      wait_for_copies();
      __syncthreads();

      // Probabilities, and dv += p^T do.
      float s[queries / 8][4] = {};
#pragma unroll
      for (int d = 0; d < D / 16; ++d) {
        std::uint32_t a[4];
        load_a<D>(a, k_tile, 16 * warp, 16 * d);
#pragma unroll
        for (int n = 0; n < queries / 16; ++n) {
          std::uint32_t b[4];
          load_b_transposed<D>(b, q_tile, 16 * d, 16 * n);
          multiply_add(s[2 * n], a, b[0], b[1]);
          multiply_add(s[2 * n + 1], a, b[2], b[3]);
        }
      }
      std::uint32_t p[queries / 16][4];
#pragma unroll
      for (int n = 0; n < queries / 8; ++n) {
        const int column = 8 * n + 2 * t;
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int key = 16 * warp + g + e / 2 * 8, query = column + e % 2;
          const bool hidden = i == key_tile && key > query;
          s[n][e] = hidden ? 0.0f : exp2f(s[n][e] * scale - lse_tile[query]);
        }
        p[n / 2][n % 2 * 2] = pack_bf16(s[n][0], s[n][1]);
        p[n / 2][n % 2 * 2 + 1] = pack_bf16(s[n][2], s[n][3]);
      }
#pragma unroll
      for (int n = 0; n < queries / 16; ++n)
#pragma unroll
        for (int d = 0; d < D / 16; ++d) {
          std::uint32_t b[4];
          load_b<D>(b, o_tile, 16 * n, 16 * d);
          multiply_add(dv_sum[2 * d], p[n], b[0], b[1]);
          multiply_add(dv_sum[2 * d + 1], p[n], b[2], b[3]);
        }

      // Score gradients ds = p (dp - delta), and dk += ds^T q.
      float dp[queries / 8][4] = {};
#pragma unroll
      for (int d = 0; d < D / 16; ++d) {
        std::uint32_t a[4];
        load_a<D>(a, v_tile, 16 * warp, 16 * d);
#pragma unroll
        for (int n = 0; n < queries / 16; ++n) {
          std::uint32_t b[4];
          load_b_transposed<D>(b, o_tile, 16 * d, 16 * n);
          multiply_add(dp[2 * n], a, b[0], b[1]);
          multiply_add(dp[2 * n + 1], a, b[2], b[3]);
        }
      }
#pragma unroll
      for (int n = 0; n < queries / 8; ++n) {
        const int column = 8 * n + 2 * t;
        const float d0 = delta_tile[column], d1 = delta_tile[column + 1];
        // The rounded probabilities are at hand; the exact ones would cost 32 registers.
        std::uint32_t& upper = p[n / 2][n % 2 * 2];
        std::uint32_t& lower = p[n / 2][n % 2 * 2 + 1];
        upper = pack_bf16(low_bf16(upper) * (dp[n][0] - d0), high_bf16(upper) * (dp[n][1] - d1));
        lower = pack_bf16(low_bf16(lower) * (dp[n][2] - d0), high_bf16(lower) * (dp[n][3] - d1));
        *reinterpret_cast<std::uint32_t*>(s_tile + tile_at<queries>(16 * warp + g, column)) = upper;
        *reinterpret_cast<std::uint32_t*>(s_tile + tile_at<queries>(16 * warp + g + 8, column)) =
            lower;
      }
#pragma unroll
      for (int n = 0; n < queries / 16; ++n)
#pragma unroll
        for (int d = 0; d < D / 16; ++d) {
          std::uint32_t b[4];
          load_b<D>(b, q_tile, 16 * n, 16 * d);
          multiply_add(dk_sum[2 * d], p[n], b[0], b[1]);
          multiply_add(dk_sum[2 * d + 1], p[n], b[2], b[3]);
        }
      __syncthreads();  // All score gradients are in shared memory.

      // dq += ds k; a warp has 16 queries here.
      std::uint32_t a[keys / 16][4];
      for (int n = 0; n < keys / 16; ++n)
        load_a_transposed<queries>(a[n], s_tile, 16 * warp, 16 * n);
#pragma unroll
      for (int d = 0; d < D / 16; ++d) {
        float part[2][4] = {};
#pragma unroll
        for (int n = 0; n < keys / 16; ++n) {
          std::uint32_t b[4];
          load_b<D>(b, k_tile, 16 * n, 16 * d);
          multiply_add(part[0], a[n], b[0], b[1]);
          multiply_add(part[1], a[n], b[2], b[3]);
        }
        for (int side = 0; side < 2; ++side)
          for (int e = 0; e < 4; ++e)
            atomicAdd(dq + q_at + (16 * warp + g + e / 2 * 8) * q_stride + 16 * d + 8 * side +
                          2 * t + e % 2,
                      part[side][e]);
      }
    }

  for (int half = 0; half < 2; ++half) {
    const std::int64_t row = 16 * warp + g + 8 * half;
    for (int n = 0; n < D / 8; ++n) {
      *reinterpret_cast<std::uint32_t*>(dv + v_at + row * v_stride + 2 * t + 8 * n) =
          pack_bf16(dv_sum[n][2 * half], dv_sum[n][2 * half + 1]);
      *reinterpret_cast<std::uint32_t*>(dk + k_at + row * k_stride + 2 * t + 8 * n) = pack_bf16(
          dk_sum[n][2 * half] * score_scale<D>(), dk_sum[n][2 * half + 1] * score_scale<D>());
    }
  }
}

/// Scales and rounds: to = from * scale; `count` is a multiple of 4.
__global__ void scale_to_bf16(const float* from, std::uint16_t* to, std::int64_t count,
                              float scale) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       4 * i < count; i += step) {
    const float4 f = reinterpret_cast<const float4*>(from)[i];
    uint2 words;
    words.x = pack_bf16(f.x * scale, f.y * scale);
    words.y = pack_bf16(f.z * scale, f.w * scale);
    reinterpret_cast<uint2*>(to)[i] = words;
  }
}

}  // namespace orrery::calibration
