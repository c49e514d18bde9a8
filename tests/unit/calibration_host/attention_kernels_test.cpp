// Attention, run on the host thread by thread, against the references: all queries and all keys.
// The imitation of CUDA comes before what needs it.
// clang-format off
#include "tests/support/thread_block.hpp"
#include "calibration/kernels/attention.cuh"
// clang-format on

#include <gtest/gtest.h>

#include "calibration/host/reference.hpp"
#include "calibration/kernels/random_value.hpp"

namespace orrery::calibration::attention_kernels_test {
namespace {

using Bits = std::vector<std::uint16_t>;

Bits random(std::uint64_t seed, std::size_t count) {
  Bits bits(count);
  for (std::size_t i = 0; i < count; ++i) bits[i] = to_bf16(random_value(seed, i));
  return bits;
}

Doubles values(const Bits& bits) {
  Doubles out;
  for (const std::uint16_t one : bits) out.push_back(from_bf16(one));
  return out;
}

struct Shape {
  int batch, sequence, heads, kv_heads, dim;
};

// A head's tokens 0..count-1 of a [batch, sequence, heads, dim] array whose tokens lie `stride`
// apart.
Doubles head_of(const Bits& bits, const Shape& s, int b, int head, int count, int stride) {
  Doubles out;
  for (int i = 0; i < count; ++i)
    for (int d = 0; d < s.dim; ++d)
      out.push_back(from_bf16(
          bits[static_cast<std::size_t>(b * s.sequence + i) * stride + head * s.dim + d]));
  return out;
}

class AttentionKernels : public testing::TestWithParam<Shape> {};
// Two query tiles and four key tiles; grouped keys; two sequences; both head sizes.
INSTANTIATE_TEST_SUITE_P(All, AttentionKernels,
                         testing::Values(Shape{1, 256, 1, 1, 64}, Shape{2, 128, 2, 1, 64},
                                         Shape{1, 128, 2, 1, 128}));

template <int D>
void run(const Shape& s, const Bits& q, const Bits& k, const Bits& v, const Bits& d_o, int v_stride,
         Bits& o, std::vector<float>& lse, std::vector<float>& dq, Bits& dk, Bits& dv) {
  const unsigned heads = s.heads, batch = s.batch;
  ThreadBlocks::run({static_cast<unsigned>(s.sequence / ForwardTiles::queries), heads, batch},
                    ForwardTiles::threads, ForwardTiles::shared_bytes<D>(), [&] {
                      attention_forward<D>(q.data(), k.data(), v.data(), o.data(), lse.data(),
                                           v_stride, s.sequence, s.heads, s.kv_heads);
                    });
  std::vector<float> delta(lse.size(), NAN);
  const int tokens = s.batch * s.sequence;
  ThreadBlocks::run({static_cast<unsigned>(tokens * s.heads / 8), 1, 1}, stream_threads, 0, [&] {
    attention_delta<D>(o.data(), d_o.data(), delta.data(), tokens, s.sequence, s.heads);
  });
  ThreadBlocks::run({static_cast<unsigned>(s.sequence / BackwardTiles::keys),
                     static_cast<unsigned>(s.kv_heads), batch},
                    BackwardTiles::threads, BackwardTiles::shared_bytes<D>(), [&] {
                      attention_backward<D>(q.data(), k.data(), v.data(), d_o.data(), lse.data(),
                                            delta.data(), dq.data(), dk.data(), dv.data(), v_stride,
                                            s.sequence, s.heads, s.kv_heads);
                    });
}

TEST_P(AttentionKernels, EqualTheReference) {
  const Shape s = GetParam();
  const int q_stride = s.heads * s.dim, k_stride = s.kv_heads * s.dim, v_stride = k_stride + 64;
  const std::size_t tokens = static_cast<std::size_t>(s.batch) * s.sequence;
  const Bits q = random(1, tokens * q_stride), k = random(2, tokens * k_stride);
  const Bits v = random(3, tokens * v_stride), d_o = random(4, tokens * q_stride);
  Bits o(q.size(), 0xffff), dk(k.size(), 0xffff), dv(v.size(), 0xffff);
  std::vector<float> lse(tokens * s.heads, NAN), dq(q.size(), 0.0f);
  (s.dim == 64 ? run<64> : run<128>)(s, q, k, v, d_o, v_stride, o, lse, dq, dk, dv);

  Doubles expected_o(q.size()), expected_dq(q.size()), expected_dk(k.size(), 0.0);
  Doubles expected_dv(k.size(), 0.0), actual_dv, expected_lse(lse.size());
  for (int b = 0; b < s.batch; ++b)
    for (int head = 0; head < s.heads; ++head) {
      const int kv_head = head / (s.heads / s.kv_heads);
      Doubles dkeys(static_cast<std::size_t>(s.sequence) * s.dim, 0.0), dvalues = dkeys;
      for (int i = 0; i < s.sequence; ++i) {
        const std::size_t at =
            static_cast<std::size_t>(b * s.sequence + i) * q_stride + head * s.dim;
        const Doubles query = values({q.begin() + at, q.begin() + at + s.dim});
        const Doubles doutput = values({d_o.begin() + at, d_o.begin() + at + s.dim});
        const Doubles keys = head_of(k, s, b, kv_head, i + 1, k_stride);
        const Doubles vals = head_of(v, s, b, kv_head, i + 1, v_stride);
        const AttentionRow row = attention_row(query, keys, vals);
        const Doubles dquery = attention_backward_row(query, keys, vals, doutput, dkeys, dvalues);
        for (int d = 0; d < s.dim; ++d) {
          expected_o[at + d] = row.output[d];
          // The kernel leaves the scale to the kernel that rounds.
          expected_dq[at + d] = dquery[d] * std::sqrt(static_cast<double>(s.dim));
        }
        expected_lse[static_cast<std::size_t>(b * s.heads + head) * s.sequence + i] = row.lse;
      }
      for (int i = 0; i < s.sequence; ++i)
        for (int d = 0; d < s.dim; ++d) {
          const std::size_t to =
              static_cast<std::size_t>(b * s.sequence + i) * k_stride + kv_head * s.dim + d;
          expected_dk[to] += dkeys[i * s.dim + d];
          expected_dv[to] += dvalues[i * s.dim + d];
        }
    }
  for (std::size_t token = 0; token < tokens; ++token) {
    for (int d = 0; d < k_stride; ++d) actual_dv.push_back(from_bf16(dv[token * v_stride + d]));
    EXPECT_EQ(dv[token * v_stride + k_stride], 0xffff);  // Beyond its heads nothing is written.
  }
  // Probabilities and score gradients are rounded to bf16 on the way: 2^-9 each.
  EXPECT_LT(relative_error(values(o), expected_o), 4e-3);
  EXPECT_LT(relative_error({lse.begin(), lse.end()}, expected_lse), 1e-5);
  EXPECT_LT(relative_error(actual_dv, expected_dv), 6e-3);
  EXPECT_LT(relative_error({dq.begin(), dq.end()}, expected_dq), 1e-2);
  EXPECT_LT(relative_error(values(dk), expected_dk), 1e-2);
}

}  // namespace
}  // namespace orrery::calibration::attention_kernels_test
