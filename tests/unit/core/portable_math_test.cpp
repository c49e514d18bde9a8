#include <gtest/gtest.h>

#include <cmath>

#include "sim/core/random.hpp"

namespace orrery::portable_math_test {
namespace {

TEST(PortableMath, IsLibmsWithinItsLastBits) {
  for (double x = 1e-300; x < 1e300; x *= 1.37)
    EXPECT_NEAR(portable_log(x), std::log(x), 1e-15 * std::fmax(1.0, std::abs(std::log(x)))) << x;
  for (double x = 0.5; x < 2.0; x += 0.001) EXPECT_NEAR(portable_log(x), std::log(x), 4e-16) << x;
  for (double x = -690.0; x < 690.0; x += 0.173)
    EXPECT_NEAR(portable_exp(x) / std::exp(x), 1.0, 1e-15) << x;
}

TEST(PortableMath, IsExactWhereItCanBe) {
  EXPECT_EQ(portable_log(1.0), 0.0);
  EXPECT_EQ(portable_exp(0.0), 1.0);
  EXPECT_EQ(portable_exp(-1e6), 0.0);
  EXPECT_LT(portable_exp(1e6), 1.1e304);
}

}  // namespace
}  // namespace orrery::portable_math_test
