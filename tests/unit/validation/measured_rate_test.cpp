#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "sim/validation/validate.hpp"
#include "tests/support/temporary_folder.hpp"

namespace orrery::measured_rate_test {
namespace {

std::string case_with(const std::string& measured) {
  return R"([{"id": "one", "source": {"title": "t", "locator": "l"}, "system": "dgx-h100",
    "gpus": 8, "model": "llama3-8b", "plan": {"tp": 8, "mbs": 1, "gbs": 8},
    "measured": {)" +
         measured + "}}]";
}

ValidationReport report_of(const std::string& measured) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "cases.json").string();
  std::ofstream{path} << case_with(measured);
  return validate_file(path);
}

// Tokens a second and GPU say how long a step takes: gbs x seq of them on all GPUs.
TEST(MeasuredRate, StandsForAStepTime) {
  const ValidationReport by_rate = report_of(R"("tokens_per_s_per_gpu": 8192)");
  ASSERT_EQ(by_rate.comparisons.size(), 1u);
  EXPECT_NEAR(by_rate.comparisons[0].measured, 8.0 * 8192 / (8 * 8192), 1e-12);
  const ValidationReport by_time = report_of(R"("step_time_s": 1.0, "tokens_per_s_per_gpu": 5)");
  EXPECT_EQ(by_time.comparisons[0].measured, 1.0);
  EXPECT_EQ(by_time.comparisons[0].predicted, by_rate.comparisons[0].predicted);
}

TEST(MeasuredRate, ACaseWithoutAnyIsRefused) {
  const ValidationReport none = report_of(R"("tflops_per_gpu": 400)");
  EXPECT_TRUE(none.comparisons.empty());
  ASSERT_EQ(none.refusals.size(), 1u);
  EXPECT_THAT(none.refusals[0].reason, testing::HasSubstr("has no step_time_s"));
}

}  // namespace
}  // namespace orrery::measured_rate_test
