#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "sim/posttraining/rl_step.hpp"
#include "sim/validation/validate.hpp"

namespace orrery::rl_coverage_test {
namespace {

// Shares of published steps within the range, and their mean error: nine in ten are the aim.
TEST(RlSteps, LieInTheirRange) {
  int all = 0, inside = 0;
  double errors = 0.0;
  for (const char* file : {"nemo-rl", "nemo-rl-phases", "verl"}) {
    const ValidationReport report = validate_file(
        std::string{ORRERY_TEST_SOURCE} + "/tests/validation/posttraining/" + file + ".json");
    EXPECT_TRUE(report.refusals.empty()) << file;
    for (const Comparison& row : report.comparisons) {
      if (row.quantity != "step_time_s") continue;
      ++all;
      inside += std::abs(std::log(row.measured / row.predicted)) <= rl_step_error;
      errors += std::abs(row.error());
    }
  }
  EXPECT_EQ(all, 40);
  EXPECT_GE(inside, 0.85 * all);
  EXPECT_LE(errors / all, 0.13);
}

// Half of the GPUs at tp 4 could not generate as fast as all by turns: the one pair of published
// steps in which a loop of both halves at a time is slower; in the others it is faster.
TEST(RlSteps, SaysWhetherBothHalvesAtATimeAreFaster) {
  const ValidationReport report =
      validate_file(ORRERY_TEST_SOURCE "/tests/validation/posttraining/nemo-rl.json");
  std::map<std::string, const Comparison*> rows;
  for (const Comparison& row : report.comparisons) rows[row.id] = &row;
  const auto agrees = [&](const std::string& by_turns, const std::string& at_a_time) {
    const Comparison &one = *rows.at(by_turns), &other = *rows.at(at_a_time);
    return (one.measured < other.measured) == (one.predicted < other.predicted);
  };
  EXPECT_TRUE(agrees("qwen3-30b-a3b-dgx-h100-32-bf16-sync@v0.4",
                     "qwen3-30b-a3b-dgx-h100-32-bf16-async1@v0.4"));
  EXPECT_TRUE(agrees("qwen3-30b-a3b-dgx-h100-32-bf16-sync@v0.5",
                     "qwen3-30b-a3b-dgx-h100-32-bf16-async1@v0.5"));
  EXPECT_TRUE(agrees("qwen3-30b-a3b-dgx-h100-32-bf16-sync@v0.6",
                     "qwen3-30b-a3b-dgx-h100-32-bf16-async1@v0.6"));
}

// Weights arrive within a factor of 1.6 of every published time, 1.25 on average.
TEST(WeightTransfers, ArriveAsPublished) {
  const ValidationReport report =
      validate_file(ORRERY_TEST_SOURCE "/tests/validation/posttraining/weight-transfer.json");
  double sum = 0.0;
  for (const Comparison& row : report.comparisons) {
    const double factor = std::exp(std::abs(std::log(row.measured / row.predicted)));
    EXPECT_LE(factor, 1.6) << row.id;
    sum += factor;
  }
  EXPECT_LE(sum / static_cast<double>(report.comparisons.size()), 1.25);
}

}  // namespace
}  // namespace orrery::rl_coverage_test
