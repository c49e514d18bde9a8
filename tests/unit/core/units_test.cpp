#include "sim/core/units.hpp"

#include <gtest/gtest.h>

#include <type_traits>

namespace orrery::units_test {
namespace {

TEST(Units, SameKindAddsSubtractsScales) {
  Seconds t{1.5};
  t += Seconds{0.5};
  EXPECT_EQ(t, Seconds{2.0});
  t -= Seconds{1.5};
  EXPECT_EQ(t, Seconds{0.5});
  EXPECT_EQ((Bytes{3} + Bytes{4}).si(), 7.0);
  EXPECT_EQ((Bytes{3} - Bytes{4}).si(), -1.0);
  EXPECT_EQ((2.0 * Flop{3}).si(), 6.0);
  EXPECT_EQ((Flop{3} * 2.0).si(), 6.0);
  EXPECT_EQ((Flop{3} / 2.0).si(), 1.5);
}

TEST(Units, RatioOfOneKindIsANumber) {
  static_assert(std::is_same_v<decltype(Bytes{6} / Bytes{3}), double>);
  EXPECT_EQ(Bytes{6} / Bytes{3}, 2.0);
}

TEST(Units, RatesJoinTheirKinds) {
  // 400 Gb/s carry 50e9 bytes a second: 1e9 bytes take 20 ms.
  EXPECT_DOUBLE_EQ((Bytes{1e9} / BytesPerSecond{50e9}).si(), 0.02);
  // 312 TFLOP at 312 TFLOP/s are one second.
  EXPECT_DOUBLE_EQ((Flop{312e12} / FlopPerSecond{312e12}).si(), 1.0);
  EXPECT_DOUBLE_EQ((Bytes{1e9} / Seconds{0.02}).si(), 50e9);
  EXPECT_DOUBLE_EQ((Flop{1e12} / Seconds{2}).si(), 5e11);
  EXPECT_DOUBLE_EQ((BytesPerSecond{50e9} * Seconds{0.02}).si(), 1e9);
  EXPECT_DOUBLE_EQ(microseconds(5).si(), 5e-6);
}

template <class A, class B>
concept addable = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept comparable = requires(A a, B b) {
  a < b;
};

TEST(Units, KindsDoNotMix) {
  static_assert(addable<Seconds, Seconds> && comparable<Seconds, Seconds>);
  static_assert(!addable<Seconds, Bytes> && !comparable<Seconds, Bytes>);
  static_assert(!addable<Seconds, double>);
  static_assert(!std::is_convertible_v<double, Seconds>);
  EXPECT_EQ(Seconds{}.si(), 0.0);
}

}  // namespace
}  // namespace orrery::units_test
