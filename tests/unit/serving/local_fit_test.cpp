#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "sim/serving/fitted_table.hpp"

namespace orrery::local_fit_test {
namespace {

// A grid of 5 x 5 whole points with the values of `f`.
template <class F>
LocalFit grid(F f) {
  LocalFit fit{2};
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 5; ++j) {
      const std::array<double, 2> point{static_cast<double>(i), static_cast<double>(j)};
      fit.add(point, f(point[0], point[1]));
    }
  return fit;
}

TEST(LocalFit, GivesAPointBackAsItWas) {
  const LocalFit fit = grid([](double x, double y) { return x * y; });
  for (const double x : {0.0, 2.0, 4.0}) {
    const auto answer = fit.at(std::array{x, 3.0});
    EXPECT_TRUE(answer.exact);
    EXPECT_EQ(answer.value, 3.0 * x);
    EXPECT_EQ(answer.outside, 0.0);
  }
}

TEST(LocalFit, AConstantIsMetExactlyAndAPlaneAlmost) {
  const LocalFit constant = grid([](double, double) { return 0.7; });
  EXPECT_NEAR(constant.at(std::array{1.3, 2.6}).value, 0.7, 1e-12);
  // The ridge of 0.01 pulls slopes to 0 by about a hundredth over the neighbours' variance.
  const LocalFit plane = grid([](double x, double y) { return 0.3 * x - 0.2 * y; });
  const auto answer = plane.at(std::array{1.3, 2.6});
  EXPECT_FALSE(answer.exact);
  EXPECT_NEAR(answer.value, 0.3 * 1.3 - 0.2 * 2.6, 0.01);
}

TEST(LocalFit, StaysAtTheBorderOutside) {
  const LocalFit fit = grid([](double x, double) { return x; });
  const auto answer = fit.at(std::array{7.0, 8.0});
  EXPECT_NEAR(answer.outside, 5.0, 1e-12);  // 3 and 4 beyond the corner.
  EXPECT_NEAR(answer.value, 4.0, 1e-12);
  EXPECT_FALSE(answer.exact);
  EXPECT_EQ(fit.outside(std::array{2.0, 2.0}), 0.0);
}

TEST(LocalFit, NoSlopeRunsAway) {
  LocalFit fit{1};
  fit.add(std::array{0.0}, 0.0);
  fit.add(std::array{0.001}, 1.0);
  fit.add(std::array{10.0}, 1.0);
  const double value = fit.at(std::array{5.0}).value;
  EXPECT_GE(value, -0.25);
  EXPECT_LE(value, 1.25);
}

TEST(LocalFit, OnePointIsEnough) {
  LocalFit fit{3};
  fit.add(std::array{1.0, 2.0, 3.0}, 0.4);
  EXPECT_NEAR(fit.at(std::array{1.5, 2.0, 3.0}).value, 0.4, 1e-12);
}

}  // namespace
}  // namespace orrery::local_fit_test
