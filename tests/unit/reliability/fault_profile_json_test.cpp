#include <gtest/gtest.h>

#include "sim/reliability/reliability_text.hpp"

namespace orrery::fault_profile_json_test {
namespace {

// Written and read again it says the same of causes, months and repairs, to the digits written.
TEST(FaultProfileJson, ReadAgainIsTheSameProfile) {
  const FaultTrace trace = read_fault_trace("stepfun", {}, {});
  const Reliability base = read_reliability("default", {});
  const Reliability profile = profile_of(trace, base, 8);
  const Reliability again =
      parse_reliability(JsonValue::parse(fault_profile_json(trace, base, 8), "profile.json"), base);
  ASSERT_EQ(again.causes.size(), profile.causes.size());
  for (std::size_t i = 0; i < profile.causes.size(); ++i) {
    EXPECT_EQ(again.causes[i].group, profile.causes[i].group);
    EXPECT_EQ(again.causes[i].events, profile.causes[i].events);
    EXPECT_NEAR(again.causes[i].per_gpu_day / profile.causes[i].per_gpu_day, 1.0, 1e-5);
  }
  EXPECT_EQ(again.batches, profile.batches);
  EXPECT_NEAR(again.month_deviation, profile.month_deviation, 1e-4);
  ASSERT_EQ(again.repair.size(), profile.repair.size());
  for (std::size_t i = 0; i < profile.repair.size(); ++i)
    EXPECT_NEAR(again.repair[i] / profile.repair[i], 1.0, 1e-5);
  EXPECT_EQ(again.events(), 582.0);
}

}  // namespace
}  // namespace orrery::fault_profile_json_test
