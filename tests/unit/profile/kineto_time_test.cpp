#include <gtest/gtest.h>

#include "sim/profile/kineto_trace.hpp"

namespace orrery::kineto_time_test {
namespace {

TEST(KinetoTime, KeepsEveryNanosecondOfATimeSince1970) {
  EXPECT_EQ(nanoseconds_of("1712345678901234.567"), 1'712'345'678'901'234'567);
  EXPECT_EQ(nanoseconds_of("5203.257"), 5'203'257);
  EXPECT_EQ(nanoseconds_of("5203.2"), 5'203'200);
  EXPECT_EQ(nanoseconds_of("5203"), 5'203'000);
  EXPECT_EQ(nanoseconds_of("0"), 0);
}

TEST(KinetoTime, RoundsBelowANanosecond) {
  EXPECT_EQ(nanoseconds_of("1.2344"), 1234);
  EXPECT_EQ(nanoseconds_of("1.2345"), 1235);
  EXPECT_EQ(nanoseconds_of("1.23449999"), 1234);
  EXPECT_EQ(nanoseconds_of("0.9999"), 1000);
}

TEST(KinetoTime, ReadsExponents) {
  EXPECT_EQ(nanoseconds_of("1e3"), 1'000'000);
  EXPECT_EQ(nanoseconds_of("1.5E+1"), 15'000);
  EXPECT_EQ(nanoseconds_of("12345e-3"), 12'345);
  EXPECT_EQ(nanoseconds_of("15e-4"), 2);  // 1.5 ns.
}

TEST(KinetoTime, RefusesWhatIsNoTime) {
  for (const char* text : {"", ".", "-1", "1,5", "0x10", "1e", "1e99", "nan", "1.2.3", " 1",
                           "9223372036854775807", "1e+-3"})
    EXPECT_EQ(nanoseconds_of(text), std::nullopt) << text;
  EXPECT_EQ(nanoseconds_of("4611686018427387.904"), std::int64_t{1} << 62);
  EXPECT_EQ(nanoseconds_of("4611686018427387.905"), std::nullopt);
}

}  // namespace
}  // namespace orrery::kineto_time_test
