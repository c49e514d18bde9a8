#include <gtest/gtest.h>

#include <cmath>

#include "sim/serving/serving_error.hpp"

namespace orrery::serving_by_runs_test {
namespace {

const ServingPlace here{"vllm", "llama3.1-70b", "dgx-h100"};

MeasuredServing run(const ServingPlace& place, double error) {
  return {"", place, 10.0 * std::exp(error), 10.0};
}

// Of TPOT all runs of one engine, model and system share s = 0.0024 + 0.0001 + 0.0046, and have
// 0.0099 for themselves. After n of them with the mean error x the offset is n s x / (n s + own).
TEST(ServingByRuns, RunsOfTheSamePlaceAreAMeanThatShrinks) {
  const double s = 0.0071, own = 0.0099;
  for (const int n : {1, 2, 5, 50}) {
    std::vector<MeasuredServing> runs;
    double mean = 0.0;
    for (int i = 0; i < n; ++i) {
      const double error = 0.1 + 0.02 * i;
      runs.push_back(run(here, error));
      mean += error / n;
    }
    const ServingByRuns by = serving_by_runs(ServingFigure::tpot, here, runs);
    EXPECT_EQ(by.runs, n);
    EXPECT_NEAR(by.offset, n * s * mean / (n * s + own), 1e-12);
    EXPECT_NEAR(by.deviation, 1.71 * std::sqrt(s * own / (n * s + own) + own), 1e-12);
  }
}

TEST(ServingByRuns, AnotherEngineSaysNothing) {
  const ServingByRuns by =
      serving_by_runs(ServingFigure::tpot, here, {run({"sglang", here.model, here.system}, 0.5)});
  EXPECT_EQ(by.offset, 0.0);
  EXPECT_NEAR(by.deviation, 1.71 * std::sqrt(0.0071 + 0.0099), 1e-12);
}

TEST(ServingByRuns, NearerRunsSayMore) {
  const auto offset = [&](const ServingPlace& place) {
    return serving_by_runs(ServingFigure::ttft, here, {run(place, 0.3)}).offset;
  };
  const double same = offset(here), model = offset({"vllm", here.model, "dgx-b200"});
  const double engine = offset({"vllm", "qwen3-8b", "dgx-b200"});
  EXPECT_GT(same, model);
  EXPECT_GT(model, engine);
  EXPECT_GT(engine, 0.0);
  EXPECT_LT(same, 0.3);
}

TEST(ServingByRuns, TheRangeIsAboutTheValue) {
  const ServingByRuns by = serving_by_runs(ServingFigure::throughput, here, {run(here, -0.2)});
  const Range range = by.range(100.0);
  EXPECT_LT(by.value(100.0), 100.0);
  EXPECT_NEAR(range.low * range.high, by.value(100.0) * by.value(100.0), 1e-9);
}

}  // namespace
}  // namespace orrery::serving_by_runs_test
