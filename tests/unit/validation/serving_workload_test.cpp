// Lengths of the requests of published runs.
#include "sim/validation/serving_workload.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace orrery::serving_workload_test {
namespace {

RequestTraffic traffic_of(const std::string& lengths) {
  const JsonValue workload = JsonValue::parse(
      R"({"arrival": "closed", "concurrency": 8, "requests": 4000, )" + lengths + "}", "case");
  return load_of_case(workload, nullptr).traffic;
}

TEST(ServingWorkload, LengthsAreConstantOrUniform) {
  const RequestTraffic constant = traffic_of(R"("isl": 1024, "osl": 128)");
  EXPECT_EQ(length_distribution_text(constant.prompt), "1024");
  EXPECT_EQ(length_distribution_text(constant.output), "128");
  // Up to the length itself, as --random-range-ratio 0.8 of InferenceX has it.
  const RequestTraffic below =
      traffic_of(R"("isl": 1024, "isl_low": 819, "osl": 128, "osl_low": 102)");
  EXPECT_EQ(length_distribution_text(below.prompt), "819..1024");
  EXPECT_EQ(length_distribution_text(below.output), "102..128");
  // Around the mean.
  const RequestTraffic around = traffic_of(
      R"("isl": 508, "isl_low": 1, "isl_high": 1015, "osl": 517, "osl_low": 1, "osl_high": 1032)");
  EXPECT_EQ(length_distribution_text(around.prompt), "1..1015");
  EXPECT_EQ(length_distribution_text(around.output), "1..1032");
}

// Their mean is the stated one, and so is their standard deviation.
TEST(ServingWorkload, ShareGptsLengthsAreAsSpreadAsTheyAreLong) {
  const RequestTraffic traffic = traffic_of(R"("isl": 219.1, "osl": 196.6, "dataset": "sharegpt")");
  EXPECT_NEAR(traffic.prompt.mean(), 219.1, 0.5);
  EXPECT_NEAR(traffic.output.mean(), 196.6, 0.5);
  for (const LengthDistribution& law : {traffic.prompt, traffic.output}) {
    EXPECT_EQ(law.kind, LengthDistribution::Kind::lognormal);
    EXPECT_NEAR(std::expm1(law.sigma * law.sigma), 1.0, 1e-3);
  }
  EXPECT_EQ(traffic_of(R"("isl": 219, "osl": 196, "dataset": "random")").output.kind,
            LengthDistribution::Kind::fixed);
}

}  // namespace
}  // namespace orrery::serving_workload_test
