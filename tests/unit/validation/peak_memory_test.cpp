#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "sim/validation/validate.hpp"

namespace orrery::peak_memory_test {
namespace {

std::filesystem::path path_of_cases() {
  return std::filesystem::path{testing::TempDir()} / "peak_memory_test.json";
}

// Two stages of an eight-layer GPT, without replicas; the last one holds logits as well.
ValidationReport report_of(const std::string& stage) {
  const std::filesystem::path path = path_of_cases();
  std::ofstream{path} << R"([{"id": "one", "source": {"title": "nobody", "locator": "nowhere"},
      "system": "dgx-h100", "gpus": 2, "model": {"name": "small", "layers": 8, "hidden": 1024,
      "heads": 8, "ffn": 4096, "vocab": 51200, "seq": 1024}, "plan": {"pp": 2, "mbs": 4, "gbs": 32},
      "measured": {"peak_memory_bytes": 1e10)"
                      << stage << "}}]";
  return validate_file(path.string());
}

double peak_of(const std::string& stage) { return report_of(stage).comparisons.at(0).predicted; }

// It is compared with the stage whose GPU reported it, else with the fullest.
TEST(PeakMemory, OfTheStageThatReportedIt) {
  const double first = peak_of(R"(, "peak_memory_stage": 0)");
  const double last = peak_of(R"(, "peak_memory_stage": 1)");
  EXPECT_NE(first, last);
  EXPECT_EQ(peak_of(""), std::max(first, last));
}

TEST(PeakMemory, OfNoStage) {
  const ValidationReport report = report_of(R"(, "peak_memory_stage": 2)");
  ASSERT_EQ(report.refusals.size(), 1u);
  EXPECT_EQ(
      report.refusals[0].reason,
      path_of_cases().string() +
          ": /0/plan: 'peak_memory_stage' is 2, but the plan has 2 stages; count them from 0");
}

}  // namespace
}  // namespace orrery::peak_memory_test
