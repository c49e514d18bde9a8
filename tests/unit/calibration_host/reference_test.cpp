// The references are what kernels are judged by: their gradients are held against differences of
// their own forward functions, so that none of them rests on the same algebra twice.
#include "calibration/host/reference.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "calibration/kernels/random_value.hpp"

namespace orrery::calibration::reference_test {
namespace {

Doubles random(std::uint64_t seed, std::size_t count) {
  Doubles values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = random_value(seed, i);
  return values;
}

double dot(const Doubles& a, const Doubles& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// d f(x) / d x_i by central differences: wrong by O(step^2) = 1e-10.
Doubles differences(const std::function<double(const Doubles&)>& f, Doubles x) {
  constexpr double step = 1e-5;
  Doubles slopes(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double at = x[i];
    x[i] = at + step;
    const double above = f(x);
    x[i] = at - step;
    slopes[i] = (above - f(x)) / (2.0 * step);
    x[i] = at;
  }
  return slopes;
}

TEST(Reference, RelativeErrorIsOfTheWholeVector) {
  EXPECT_DOUBLE_EQ(relative_error({3.0, 4.5}, {3.0, 4.0}), 0.1);  // 0.5 / 5
  EXPECT_DOUBLE_EQ(relative_error({0.0}, {0.0}), 0.0);
  EXPECT_DOUBLE_EQ(relative_error({1e-9}, {0.0}), 1.0);
  EXPECT_GE(relative_error({std::nan("")}, {1.0}), 1.0);
}

TEST(Reference, RoundsToBf16AsTheGpuDoes) {
  EXPECT_EQ(to_bf16(1.0), 0x3f80);
  EXPECT_EQ(to_bf16(1.0 + 0x1p-8), 0x3f80);  // Half way: to even.
  EXPECT_EQ(to_bf16(1.0 + 3 * 0x1p-8), 0x3f82);
  EXPECT_EQ(to_bf16(-2.5), 0xc020);
  for (unsigned bits = 0; bits < 0x7f80; ++bits)  // All finite positive ones.
    ASSERT_EQ(to_bf16(from_bf16(static_cast<std::uint16_t>(bits))), bits);
}

TEST(Reference, RmsNormGradients) {
  const Doubles x = random(1, 12), gain = random(2, 12), dy = random(3, 12);
  Doubles dgain(12, 0.0);
  const Doubles dx = rms_norm_backward_row(x, gain, dy, 1e-5, dgain);
  const auto of_x = [&](const Doubles& v) { return dot(dy, rms_norm_row(v, gain, 1e-5)); };
  const auto of_gain = [&](const Doubles& v) { return dot(dy, rms_norm_row(x, v, 1e-5)); };
  EXPECT_LT(relative_error(dx, differences(of_x, x)), 1e-8);
  EXPECT_LT(relative_error(dgain, differences(of_gain, gain)), 1e-8);
}

TEST(Reference, SwigluGradients) {
  const Doubles in = random(1, 12), dout = random(2, 6);
  const auto f = [&](const Doubles& v) { return dot(dout, swiglu_row(v)); };
  EXPECT_LT(relative_error(swiglu_backward_row(in, dout), differences(f, in)), 1e-8);
}

TEST(Reference, CrossEntropyGradients) {
  const Doubles logits = random(1, 9);
  const auto f = [&](const Doubles& v) { return 0.25 * cross_entropy_row(v, 4, 1.0).loss; };
  EXPECT_LT(relative_error(cross_entropy_row(logits, 4, 0.25).gradient, differences(f, logits)),
            1e-8);
  EXPECT_NEAR(cross_entropy_row(Doubles(8, 3.0), 1, 1.0).loss, std::log(8.0), 1e-12);
}

// Turning keeps lengths, turning back undoes it, and the product of two turned vectors depends on
// the distance of their positions alone.
TEST(Reference, Rotation) {
  const Doubles x = random(1, 64), y = random(2, 64);
  EXPECT_LT(relative_error(rotate_row(rotate_row(x, 32, 7.0, 1.0), 32, 7.0, -1.0), x), 1e-12);
  EXPECT_NEAR(dot(rotate_row(x, 32, 9.0, 1.0), rotate_row(y, 32, 5.0, 1.0)),
              dot(rotate_row(x, 32, 104.0, 1.0), rotate_row(y, 32, 100.0, 1.0)), 1e-9);
  const std::vector<float> table = rotation_table(3, 32);
  EXPECT_FLOAT_EQ(table[2 * 32], static_cast<float>(std::cos(2.0)));
  EXPECT_FLOAT_EQ(table[2 * 32 + 1], static_cast<float>(std::sin(2.0)));
}

TEST(Reference, AttentionGradients) {
  const Doubles q = random(1, 8), k = random(2, 40), v = random(3, 40), d_o = random(4, 8);
  Doubles dk(40, 0.0), dv(40, 0.0);
  const Doubles dq = attention_backward_row(q, k, v, d_o, dk, dv);
  const auto of_q = [&](const Doubles& x) { return dot(d_o, attention_row(x, k, v).output); };
  const auto of_k = [&](const Doubles& x) { return dot(d_o, attention_row(q, x, v).output); };
  const auto of_v = [&](const Doubles& x) { return dot(d_o, attention_row(q, k, x).output); };
  EXPECT_LT(relative_error(dq, differences(of_q, q)), 1e-8);
  EXPECT_LT(relative_error(dk, differences(of_k, k)), 1e-8);
  EXPECT_LT(relative_error(dv, differences(of_v, v)), 1e-8);
}

// The first step moves every weight by the rate, whatever its gradient: m / (1 - b1) = g and
// v / (1 - b2) = g^2.
TEST(Reference, AdamsFirstStepIsTheRate) {
  for (const double gradient : {1e-3, -5.0})
    EXPECT_NEAR(adam_step({1.0, 0.0, 0.0}, gradient, 0.1, 0.9, 0.999, 0.0, 1).master,
                1.0 - std::copysign(0.1, gradient), 1e-12);
}

TEST(RandomValue, IsNearToNormal) {
  double sum = 0.0, squares = 0.0, most = 0.0;
  constexpr int count = 200'000;
  for (int i = 0; i < count; ++i) {
    const double value = random_value(5, static_cast<std::uint64_t>(i));
    sum += value;
    squares += value * value;
    most = std::max(most, std::abs(value));
  }
  // Standard errors: 1 / sqrt(count) = 0.0022; of the variance sqrt((2.7 - 1) / count) = 0.0029.
  EXPECT_NEAR(sum / count, 0.0, 0.01);
  EXPECT_NEAR(squares / count, 1.0, 0.015);
  EXPECT_LT(most, 3.47);
  EXPECT_NE(random_value(5, 0), random_value(6, 0));
}

}  // namespace
}  // namespace orrery::calibration::reference_test
