#include <gtest/gtest.h>

#include "sim/kernels/kernel_time.hpp"

namespace orrery::kernel_bound_test {
namespace {

// 1 PFLOP/s over 2 TB/s: 500 operations a byte.
KernelRoofs roofs(double flop, double bytes) {
  return {Flop{flop}, Bytes{bytes}, FlopPerSecond{1e15}, BytesPerSecond{2e12}};
}

TEST(Bound, TheRidgeIsWhereBothRoofsMeet) {
  const KernelRoofs at = roofs(500e9, 1e9);
  EXPECT_EQ(at.ridge(), 500.0);
  EXPECT_EQ(at.ops_per_byte(), 500.0);
  EXPECT_DOUBLE_EQ(at.compute_time().si(), 500e-6);
  EXPECT_DOUBLE_EQ(at.memory_time().si(), 500e-6);
  EXPECT_DOUBLE_EQ(at.least_time().si(), 500e-6);
}

TEST(Bound, IsTheHigherRoof) {
  EXPECT_EQ(bound_of(roofs(501e9, 1e9), Seconds{600e-6}), Bound::compute);
  EXPECT_EQ(bound_of(roofs(499e9, 1e9), Seconds{600e-6}), Bound::memory);
  EXPECT_EQ(bound_of(roofs(0.0, 1e9), Seconds{600e-6}), Bound::memory);
}

// A launch is most of 4 us whose roof is 1 us, and not of 4 ms whose roof is 1 ms.
TEST(Bound, ShortKernelsWaitForTheirLaunch) {
  EXPECT_EQ(bound_of(roofs(1e9, 1e3), microseconds(4)), Bound::latency);
  EXPECT_EQ(bound_of(roofs(3e9, 1e3), microseconds(4)), Bound::compute);
  EXPECT_EQ(bound_of(roofs(1e12, 1e3), microseconds(4000)), Bound::compute);
}

TEST(Bound, OfNothing) {
  const KernelRoofs nothing{Flop{}, Bytes{}, FlopPerSecond{}, BytesPerSecond{2e12}};
  EXPECT_EQ(nothing.ops_per_byte(), 0.0);
  EXPECT_EQ(nothing.least_time(), Seconds{});
  EXPECT_EQ(bound_of(nothing, microseconds(3)), Bound::latency);
}

}  // namespace
}  // namespace orrery::kernel_bound_test
