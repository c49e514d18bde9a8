#pragma once

// Kernels that stream through memory, written to move each byte once wherever that is possible.
// Matrices are [rows, width] of bf16, width a multiple of 8; a block has stream_threads threads.

#include "calibration/kernels/words.cuh"

namespace orrery::calibration {

__global__ void copy_words(const uint4* from, uint4* to, std::int64_t count) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step)
    to[i] = from[i];
}

/// Reads everything: the exclusive or of all words, added to `result`, which starts at 0.
__global__ void read_words(const uint4* from, std::int64_t count, unsigned* result) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  unsigned mixed = 0;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    const uint4 words = from[i];
    mixed ^= words.x ^ words.y ^ words.z ^ words.w;
  }
  for (int lanes = 16; lanes > 0; lanes /= 2) mixed ^= __shfl_xor_sync(whole_warp, mixed, lanes);
  if (threadIdx.x % 32 == 0) atomicXor(result, mixed);
}

/// c = a + 3 b, fp32 (McCalpin's STREAM).
__global__ void triad(const float4* a, const float4* b, float4* c, std::int64_t count) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    const float4 x = a[i], y = b[i];
    float4 sum;
    sum.x = x.x + 3.0f * y.x;
    sum.y = x.y + 3.0f * y.y;
    sum.z = x.z + 3.0f * y.z;
    sum.w = x.w + 3.0f * y.w;
    c[i] = sum;
  }
}

constexpr float norm_epsilon = 1e-5f;

/// y = x / rms(x) * gain, a block a row (Zhang and Sennrich, arXiv 1910.07467).
__global__ void rms_norm(const std::uint16_t* x, const std::uint16_t* gain, std::uint16_t* y,
                         int width) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * width;
  float squares = 0.0f;
  for (int i = 8 * threadIdx.x; i < width; i += 8 * stream_threads) {
    const Eight e = load_eight(x + row + i);
    for (int j = 0; j < 8; ++j) squares += e.v[j] * e.v[j];
  }
  const float scale = rsqrtf(block_sum(squares) / static_cast<float>(width) + norm_epsilon);
  for (int i = 8 * threadIdx.x; i < width; i += 8 * stream_threads) {
    Eight e = load_eight(x + row + i);
    const Eight g = load_eight(gain + i);
    for (int j = 0; j < 8; ++j) e.v[j] *= scale * g.v[j];
    store_eight(y + row + i, e);
  }
}

/// dx of every row, and this block's share of the gain's gradient: `partial` is [gridDim.x, width].
/// Needs width floats of dynamic shared memory. Each column belongs to one thread throughout.
__global__ void rms_norm_backward(const std::uint16_t* x, const std::uint16_t* gain,
                                  const std::uint16_t* dy, std::uint16_t* dx, float* partial,
                                  int rows, int width) {
  float* const own = dynamic_shared<float>();
  for (int i = 8 * threadIdx.x; i < width; i += 8 * stream_threads)
    for (int j = 0; j < 8; ++j) own[i + j] = 0.0f;
  for (int r = blockIdx.x; r < rows; r += gridDim.x) {
    const std::int64_t row = static_cast<std::int64_t>(r) * width;
    float squares = 0.0f, product = 0.0f;
    for (int i = 8 * threadIdx.x; i < width; i += 8 * stream_threads) {
      const Eight a = load_eight(x + row + i), d = load_eight(dy + row + i);
      const Eight g = load_eight(gain + i);
      for (int j = 0; j < 8; ++j) {
        squares += a.v[j] * a.v[j];
        product += a.v[j] * d.v[j] * g.v[j];
      }
    }
    const float scale = rsqrtf(block_sum(squares) / static_cast<float>(width) + norm_epsilon);
    const float back = scale * scale * scale * block_sum(product) / static_cast<float>(width);
    for (int i = 8 * threadIdx.x; i < width; i += 8 * stream_threads) {
      Eight a = load_eight(x + row + i);
      const Eight d = load_eight(dy + row + i), g = load_eight(gain + i);
      for (int j = 0; j < 8; ++j) {
        own[i + j] += d.v[j] * a.v[j] * scale;
        a.v[j] = scale * d.v[j] * g.v[j] - back * a.v[j];
      }
      store_eight(dx + row + i, a);
    }
  }
  for (int i = 8 * threadIdx.x; i < width; i += 8 * stream_threads)
    for (int j = 0; j < 8; ++j)
      partial[static_cast<std::int64_t>(blockIdx.x) * width + i + j] = own[i + j];
}

/// out[width] = the sum over `count` rows of `partial`; a thread a column.
__global__ void sum_columns(const float* partial, float* out, int count, int width) {
  const int column = blockIdx.x * stream_threads + threadIdx.x;
  if (column >= width) return;
  float sum = 0.0f;
  for (int r = 0; r < count; ++r) sum += partial[static_cast<std::int64_t>(r) * width + column];
  out[column] = sum;
}

__device__ inline float logistic(float x) { return 1.0f / (1.0f + __expf(-x)); }

/// out = silu(gate) up (Shazeer, arXiv 2002.05202); `in` is [rows, 2 width], gates first.
__global__ void swiglu(const std::uint16_t* in, std::uint16_t* out, std::int64_t rows, int width) {
  const std::int64_t count = rows * width / 8;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    const std::int64_t row = 8 * i / width, column = 8 * i % width;
    Eight gate = load_eight(in + row * 2 * width + column);
    const Eight up = load_eight(in + row * 2 * width + width + column);
    for (int j = 0; j < 8; ++j) gate.v[j] *= logistic(gate.v[j]) * up.v[j];
    store_eight(out + 8 * i, gate);
  }
}

__global__ void swiglu_backward(const std::uint16_t* in, const std::uint16_t* dout,
                                std::uint16_t* din, std::int64_t rows, int width) {
  const std::int64_t count = rows * width / 8;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    const std::int64_t row = 8 * i / width, column = 8 * i % width;
    const std::int64_t gate_at = row * 2 * width + column, up_at = gate_at + width;
    Eight gate = load_eight(in + gate_at), up = load_eight(in + up_at);
    const Eight d = load_eight(dout + 8 * i);
    for (int j = 0; j < 8; ++j) {
      const float s = logistic(gate.v[j]), silu = gate.v[j] * s;
      gate.v[j] = d.v[j] * up.v[j] * (s + silu * (1.0f - s));
      up.v[j] = d.v[j] * silu;
    }
    store_eight(din + gate_at, gate);
    store_eight(din + up_at, up);
  }
}

/// Rotary embedding (Su et al., arXiv 2104.09864), the halves of each head of `head_dim` paired:
/// row r is token r % sequence, whose head_dim / 2 pairs of cosine and sine are in `turns`
/// [sequence, head_dim]. `direction` 1 turns, -1 turns back. Rows of `x` and `y` begin every
/// `x_stride` and `y_stride` elements; the first `width` of each are turned.
__global__ void rotate(const std::uint16_t* x, std::int64_t x_stride, const float2* turns,
                       std::uint16_t* y, std::int64_t y_stride, std::int64_t rows, int width,
                       int sequence, int head_dim, float direction) {
  const int half = head_dim / 2;
  const std::int64_t a_row = width / 16;  // Threads, each with eight pairs.
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < rows * a_row; i += step) {
    const std::int64_t row = i / a_row;
    const int pair = static_cast<int>(i % a_row) * 8;
    const int column = pair / half * head_dim + pair % half;
    const std::uint16_t* const from = x + row * x_stride + column;
    std::uint16_t* const to = y + row * y_stride + column;
    Eight a = load_eight(from), b = load_eight(from + half);
    const float2* turn = turns + row % sequence * half + pair % half;
    for (int j = 0; j < 8; ++j) {
      const float cosine = turn[j].x, sine = direction * turn[j].y;
      const float turned = a.v[j] * cosine - b.v[j] * sine;
      b.v[j] = b.v[j] * cosine + a.v[j] * sine;
      a.v[j] = turned;
    }
    store_eight(to, a);
    store_eight(to + half, b);
  }
}

/// loss = log sum exp(logits) - logits[target] of each row, and its gradient times `scale`; a block
/// a row.
__global__ void cross_entropy(const std::uint16_t* logits, const int* targets, float* loss,
                              std::uint16_t* gradient, int width, float scale) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * width;
  float most = -3.0e38f, sum = 0.0f;  // Running values of this thread.
  for (int i = 8 * threadIdx.x; i < width; i += 8 * stream_threads) {
    const Eight e = load_eight(logits + row + i);
    float here = e.v[0];
    for (int j = 1; j < 8; ++j) here = fmaxf(here, e.v[j]);
    if (here > most) {
      sum *= __expf(most - here);
      most = here;
    }
    for (int j = 0; j < 8; ++j) sum += __expf(e.v[j] - most);
  }
  const float all = block_max(most);
  const float total = block_sum(sum * __expf(most - all));
  const int target = targets[blockIdx.x];
  if (threadIdx.x == 0) {
    const std::uint32_t bits = logits[row + target];
    loss[blockIdx.x] = logf(total) + all - __uint_as_float(bits << 16);
  }
  for (int i = 8 * threadIdx.x; i < width; i += 8 * stream_threads) {
    Eight e = load_eight(logits + row + i);
    for (int j = 0; j < 8; ++j)
      e.v[j] = scale * (__expf(e.v[j] - all) / total - (i + j == target ? 1.0f : 0.0f));
    store_eight(gradient + row + i, e);
  }
}

/// Row i of `y` is row index[i] of `x`; a block a row.
__global__ void permute_rows(const std::uint16_t* x, const int* index, std::uint16_t* y,
                             int width) {
  const std::int64_t from = static_cast<std::int64_t>(index[blockIdx.x]) * width;
  const std::int64_t to = static_cast<std::int64_t>(blockIdx.x) * width;
  for (int i = 8 * threadIdx.x; i < width; i += 8 * stream_threads)
    *reinterpret_cast<uint4*>(y + to + i) = *reinterpret_cast<const uint4*>(x + from + i);
}

struct AdamRates {
  float rate, beta1, beta2, epsilon;
  float correction1, correction2;  ///< 1 - beta^step.
};

/// One step of Adam (Kingma and Ba, arXiv 1412.6980) on fp32 masters; it also writes the bf16
/// weights. `count` is a multiple of 4.
__global__ void adam(float* master, float* first, float* second, const float* gradient,
                     std::uint16_t* weight, std::int64_t count, AdamRates rates) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       4 * i < count; i += step) {
    float4 p = reinterpret_cast<float4*>(master)[i];
    float4 m = reinterpret_cast<float4*>(first)[i];
    float4 v = reinterpret_cast<float4*>(second)[i];
    const float4 g = reinterpret_cast<const float4*>(gradient)[i];
    const auto update = [&](float& p1, float& m1, float& v1, float g1) {
      m1 = rates.beta1 * m1 + (1.0f - rates.beta1) * g1;
      v1 = rates.beta2 * v1 + (1.0f - rates.beta2) * g1 * g1;
      p1 -= rates.rate * (m1 / rates.correction1) / (sqrtf(v1 / rates.correction2) + rates.epsilon);
    };
    update(p.x, m.x, v.x, g.x);
    update(p.y, m.y, v.y, g.y);
    update(p.z, m.z, v.z, g.z);
    update(p.w, m.w, v.w, g.w);
    reinterpret_cast<float4*>(master)[i] = p;
    reinterpret_cast<float4*>(first)[i] = m;
    reinterpret_cast<float4*>(second)[i] = v;
    uint2 words;
    words.x = pack_bf16(p.x, p.y);
    words.y = pack_bf16(p.z, p.w);
    reinterpret_cast<uint2*>(weight)[i] = words;
  }
}

/// sum = a + b.
__global__ void add(const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* sum,
                    std::int64_t count) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       8 * i < count; i += step) {
    Eight x = load_eight(a + 8 * i);
    const Eight y = load_eight(b + 8 * i);
    for (int j = 0; j < 8; ++j) x.v[j] += y.v[j];
    store_eight(sum + 8 * i, x);
  }
}

/// Widens bf16 to fp32: to = from.
__global__ void widen(const std::uint16_t* from, float* to, std::int64_t count) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       8 * i < count; i += step) {
    const Eight e = load_eight(from + 8 * i);
    for (int j = 0; j < 8; ++j) to[8 * i + j] = e.v[j];
  }
}

/// Adds row i of `dy` to row index[i] of the fp32 `table`; a block a row.
__global__ void scatter_add(const std::uint16_t* dy, const int* index, float* table, int width) {
  const std::int64_t from = static_cast<std::int64_t>(blockIdx.x) * width;
  const std::int64_t to = static_cast<std::int64_t>(index[blockIdx.x]) * width;
  for (int i = 8 * threadIdx.x; i < width; i += 8 * stream_threads) {
    const Eight e = load_eight(dy + from + i);
    for (int j = 0; j < 8; ++j) atomicAdd(table + to + i + j, e.v[j]);
  }
}

}  // namespace orrery::calibration
