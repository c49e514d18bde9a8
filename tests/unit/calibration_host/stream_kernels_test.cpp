// The kernels themselves, run on the host thread by thread, against the references.
// The imitation of CUDA comes before what needs it.
// clang-format off
#include "tests/support/thread_block.hpp"
#include "calibration/kernels/stream.cuh"
// clang-format on

#include <gtest/gtest.h>

#include <numeric>

#include "calibration/host/reference.hpp"
#include "calibration/kernels/random_value.hpp"

namespace orrery::calibration::stream_kernels_test {
namespace {

// Two bf16 roundings, each by at most 2^-9.
constexpr double bf16_error = 4e-3;

std::vector<std::uint16_t> random(std::uint64_t seed, std::size_t count) {
  std::vector<std::uint16_t> bits(count);
  for (std::size_t i = 0; i < count; ++i) bits[i] = to_bf16(random_value(seed, i));
  return bits;
}

std::vector<std::uint16_t> poison(std::size_t count) {
  return std::vector<std::uint16_t>(count, 0xffff);
}

Doubles part(const std::vector<std::uint16_t>& bits, std::size_t from, std::size_t count) {
  Doubles values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = from_bf16(bits[from + i]);
  return values;
}

void append(Doubles& to, const Doubles& more) { to.insert(to.end(), more.begin(), more.end()); }

// Narrower than a block, and wider with a rest.
class Widths : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(All, Widths, testing::Values(64, 2048, 2184));

TEST_P(Widths, RmsNorm) {
  const std::size_t width = GetParam(), rows = 3;
  const auto x = random(1, rows * width), gain = random(2, width);
  auto y = poison(rows * width);
  ThreadBlocks::run({3, 1, 1}, stream_threads, 0,
                    [&] { rms_norm(x.data(), gain.data(), y.data(), GetParam()); });
  Doubles expected;
  for (std::size_t r = 0; r < rows; ++r)
    append(expected, rms_norm_row(part(x, r * width, width), part(gain, 0, width), norm_epsilon));
  EXPECT_LT(relative_error(part(y, 0, y.size()), expected), bf16_error);
}

// Five rows over two blocks: a block accumulates several.
TEST_P(Widths, RmsNormBackward) {
  const std::size_t width = GetParam(), rows = 5;
  const auto x = random(1, rows * width), gain = random(2, width), dy = random(3, rows * width);
  auto dx = poison(rows * width);
  std::vector<float> partial(2 * width, NAN), dgain(width, NAN);
  ThreadBlocks::run({2, 1, 1}, stream_threads, width * sizeof(float), [&] {
    rms_norm_backward(x.data(), gain.data(), dy.data(), dx.data(), partial.data(), 5, GetParam());
  });
  ThreadBlocks::run({static_cast<unsigned>(width / stream_threads + 1), 1, 1}, stream_threads, 0,
                    [&] { sum_columns(partial.data(), dgain.data(), 2, GetParam()); });
  Doubles expected, expected_gain(width, 0.0);
  for (std::size_t r = 0; r < rows; ++r)
    append(expected,
           rms_norm_backward_row(part(x, r * width, width), part(gain, 0, width),
                                 part(dy, r * width, width), norm_epsilon, expected_gain));
  EXPECT_LT(relative_error(part(dx, 0, dx.size()), expected), bf16_error);
  EXPECT_LT(relative_error({dgain.begin(), dgain.end()}, expected_gain), 1e-5);
}

TEST_P(Widths, Swiglu) {
  const std::size_t width = GetParam(), rows = 3;
  const auto in = random(1, rows * 2 * width), dout = random(2, rows * width);
  auto out = poison(rows * width), din = poison(rows * 2 * width);
  ThreadBlocks::run({2, 1, 1}, stream_threads, 0, [&] {
    swiglu(in.data(), out.data(), 3, GetParam());
    swiglu_backward(in.data(), dout.data(), din.data(), 3, GetParam());
  });
  Doubles expected, expected_back;
  for (std::size_t r = 0; r < rows; ++r) {
    const Doubles row = part(in, r * 2 * width, 2 * width);
    append(expected, swiglu_row(row));
    append(expected_back, swiglu_backward_row(row, part(dout, r * width, width)));
  }
  EXPECT_LT(relative_error(part(out, 0, out.size()), expected), bf16_error);
  EXPECT_LT(relative_error(part(din, 0, din.size()), expected_back), bf16_error);
}

TEST_P(Widths, CrossEntropy) {
  const std::size_t width = GetParam(), rows = 3;
  const auto logits = random(1, rows * width);
  auto gradient = poison(rows * width);
  const std::vector<int> targets{0, GetParam() - 1, 17};
  std::vector<float> loss(rows, NAN);
  ThreadBlocks::run({3, 1, 1}, stream_threads, 0, [&] {
    cross_entropy(logits.data(), targets.data(), loss.data(), gradient.data(), GetParam(), 0.5f);
  });
  Doubles expected, expected_loss;
  for (std::size_t r = 0; r < rows; ++r) {
    const CrossEntropy row = cross_entropy_row(part(logits, r * width, width), targets[r], 0.5);
    append(expected, row.gradient);
    expected_loss.push_back(row.loss);
  }
  EXPECT_LT(relative_error(part(gradient, 0, gradient.size()), expected), bf16_error);
  EXPECT_LT(relative_error({loss.begin(), loss.end()}, expected_loss), 1e-5);
}

TEST_P(Widths, PermuteAndItsSum) {
  const std::size_t width = GetParam();
  const auto x = random(1, 4 * width);
  auto y = poison(4 * width);
  const std::vector<int> index{2, 0, 2, 1};
  std::vector<float> table(4 * width, 0.0f);
  ThreadBlocks::run({4, 1, 1}, stream_threads, 0, [&] {
    permute_rows(x.data(), index.data(), y.data(), GetParam());
    scatter_add(x.data(), index.data(), table.data(), GetParam());
  });
  for (std::size_t i = 0; i < width; ++i) {
    ASSERT_EQ(y[i], x[2 * width + i]);
    ASSERT_EQ(y[3 * width + i], x[width + i]);
    // Rows 0 and 2 of x were both added to row 2; nothing to row 3.
    ASSERT_FLOAT_EQ(table[2 * width + i], from_bf16(x[i]) + from_bf16(x[2 * width + i]));
    ASSERT_EQ(table[3 * width + i], 0.0f);
  }
}

TEST(StreamKernels, CopyReadTriadAdd) {
  const std::size_t count = 8 * 777;
  const auto x = random(1, count), y = random(2, count);
  auto copied = poison(count), sum = poison(count);
  std::vector<float> wide(count, NAN);
  std::vector<float> a(4 * 777), b(4 * 777), c(4 * 777, NAN);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = random_value(3, i), b[i] = random_value(4, i);
  unsigned mixed = 0, expected = 0;
  ThreadBlocks::run({2, 1, 1}, stream_threads, 0, [&] {
    copy_words(reinterpret_cast<const uint4*>(x.data()), reinterpret_cast<uint4*>(copied.data()),
               777);
    read_words(reinterpret_cast<const uint4*>(x.data()), 777, &mixed);
    add(x.data(), y.data(), sum.data(), count);
    widen(x.data(), wide.data(), count);
    triad(reinterpret_cast<const float4*>(a.data()), reinterpret_cast<const float4*>(b.data()),
          reinterpret_cast<float4*>(c.data()), 777);
  });
  EXPECT_EQ(copied, x);
  for (std::size_t i = 0; i < count; i += 2) expected ^= x[i] | unsigned{x[i + 1]} << 16;
  EXPECT_EQ(mixed, expected);
  for (std::size_t i = 0; i < count; ++i)
    ASSERT_EQ(sum[i], to_bf16(from_bf16(x[i]) + from_bf16(y[i])));
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(wide[i], from_bf16(x[i]));
  for (std::size_t i = 0; i < c.size(); ++i) ASSERT_NEAR(c[i], a[i] + 3.0 * b[i], 1e-5);
}

// Rows apart in memory, two sequences of three tokens, and back again.
TEST(StreamKernels, Rotate) {
  const int width = 256, stride = 320, rows = 6;
  const auto x = random(1, rows * stride);
  auto y = poison(rows * width), back = poison(rows * stride);
  const std::vector<float> table = rotation_table(3, 128);
  const float2* const turns = reinterpret_cast<const float2*>(table.data());
  ThreadBlocks::run({1, 1, 1}, stream_threads, 0, [&] {
    rotate(x.data(), stride, turns, y.data(), width, rows, width, 3, 128, 1.0f);
    rotate(y.data(), width, turns, back.data(), stride, rows, width, 3, 128, -1.0f);
  });
  Doubles expected, actual, there_and_back, original;
  for (std::size_t r = 0; r < rows; ++r) {
    append(expected, rotate_row(part(x, r * stride, width), 128, static_cast<double>(r % 3), 1.0));
    append(there_and_back, part(back, r * stride, width));
    append(original, part(x, r * stride, width));
    EXPECT_EQ(back[r * stride + width], 0xffff);  // Beyond the width nothing is written.
  }
  EXPECT_LT(relative_error(part(y, 0, y.size()), expected), bf16_error);
  EXPECT_LT(relative_error(there_and_back, original), 2 * bf16_error);
}

TEST(StreamKernels, Adam) {
  const std::size_t count = 4 * 300;
  std::vector<float> master(count), first(count), second(count), gradient(count);
  for (std::size_t i = 0; i < count; ++i) {
    master[i] = random_value(1, i), first[i] = 0.1f * random_value(2, i);
    second[i] = 0.01f * random_value(3, i) * random_value(3, i), gradient[i] = random_value(4, i);
  }
  const auto before = master, m = first, v = second;
  auto weight = poison(count);
  const AdamRates rates{0.01f, 0.9f, 0.95f, 1e-8f, 1.0f - 0.9f * 0.9f, 1.0f - 0.95f * 0.95f};
  ThreadBlocks::run({1, 1, 1}, stream_threads, 0, [&] {
    adam(master.data(), first.data(), second.data(), gradient.data(), weight.data(), count, rates);
  });
  for (std::size_t i = 0; i < count; ++i) {
    const AdamState after =
        adam_step({before[i], m[i], v[i]}, gradient[i], 0.01, 0.9, 0.95, 1e-8, 2);
    ASSERT_NEAR(master[i], after.master, 2e-5);
    ASSERT_NEAR(first[i], after.first, 1e-6);
    ASSERT_NEAR(second[i], after.second, 1e-6);
    ASSERT_EQ(weight[i], to_bf16(master[i]));
  }
}

}  // namespace
}  // namespace orrery::calibration::stream_kernels_test
