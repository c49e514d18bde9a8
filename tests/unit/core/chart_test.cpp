#include "sim/core/chart.hpp"

#include <gtest/gtest.h>

#include "tests/support/golden.hpp"

namespace orrery::chart_test {
namespace {

std::string labels(const ChartScale& scale) {
  std::string all;
  for (const Tick& tick : scale.ticks()) all += (all.empty() ? "" : " | ") + tick.label;
  return all;
}

TEST(ChartScale, TicksAreRoundAndInside) {
  EXPECT_EQ(labels(ChartScale::linear("mfu", 0.0, 1.0, 0, 100)),
            "0.0 | 0.2 | 0.4 | 0.6 | 0.8 | 1.0");
  EXPECT_EQ(labels(ChartScale::linear("memory_peak_bytes", 21e9, 78e9, 0, 100)),
            "20 GB | 30 GB | 40 GB | 50 GB | 60 GB | 70 GB | 80 GB");
  EXPECT_EQ(labels(ChartScale::linear("step_time_s", 0.0012, 0.0048, 0, 100)),
            "2 ms | 3 ms | 4 ms");
  EXPECT_EQ(labels(ChartScale::linear("tokens_per_s", 8200, 10764, 0, 100)),
            "8,500 | 9,000 | 9,500 | 10,000 | 10,500");
  // A single value has space on both sides.
  const ChartScale one = ChartScale::linear("mfu", 0.5, 0.5, 0, 100);
  EXPECT_NEAR(one.pixel(0.5), 50.0, 1e-6);
  for (double first : {1e-9, 0.3, 7.0, 1e12})
    for (double range : {1e-3, 0.5, 3.0, 1e6}) {
      const ChartScale scale = ChartScale::linear("", first, first * (1.0 + range), 10, 110);
      EXPECT_GE(scale.ticks().size(), 2u) << first << " " << range;
      EXPECT_LE(scale.ticks().size(), 8u) << first << " " << range;
      for (const Tick& tick : scale.ticks()) {
        EXPECT_GE(scale.pixel(tick.at), 10.0 - 1e-6);
        EXPECT_LE(scale.pixel(tick.at), 110.0 + 1e-6);
      }
    }
}

TEST(ChartScale, ALogarithmHasEqualFactors) {
  const ChartScale scale = ChartScale::logarithmic({1, 2, 4, 8, 16}, 0, 100);
  EXPECT_EQ(labels(scale), "1 | 2 | 4 | 8 | 16");
  for (double value : {1.0, 2.0, 4.0})
    EXPECT_NEAR(scale.pixel(2 * value) - scale.pixel(value),
                scale.pixel(4 * value) - scale.pixel(2 * value), 1e-9);
}

TEST(ChartScale, PlacesShareTheAxis) {
  const ChartScale scale = ChartScale::places({"none", "full"}, 0, 100);
  EXPECT_EQ(scale.pixel(0), 25.0);
  EXPECT_EQ(scale.pixel(1), 75.0);
}

const ChartAxis batches{{"256", "512", "1024", "2048"}, {256, 512, 1024, 2048}};

TEST(Chart, LinesHaveGapsWhereNothingIsKnown) {
  expect_golden(
      "charts/line.svg",
      line_chart(
          {"step_time_s over gbs", "a <model> & more", "gbs", "step_time_s"}, batches,
          {{"mbs 1", {1.0, 2.0, std::nullopt, 8.0}}, {"mbs 2", {0.9, 1.9, 3.9, std::nullopt}}}));
}

TEST(Chart, AHeatMapShowsWhatIsMissing) {
  expect_golden(
      "charts/heat.svg",
      heat_map({"mfu", "", "recompute", "gbs"}, {{"none", "full"}, {}}, batches,
               {{0.5, 0.4}, {0.52, 0.41}, {0.53, std::nullopt}, {std::nullopt, 0.42}}, "mfu"));
}

TEST(Chart, AParetoChartMarksItsFrontier) {
  const std::vector<ChartPoint> points{{10e9, 100, "a"}, {20e9, 150, "b"}, {30e9, 120, "c"}};
  expect_golden("charts/pareto.svg",
                pareto_chart({"speed against memory", "", "memory_peak_bytes", "speed"}, points,
                             {points[0], points[1]}));
}

}  // namespace
}  // namespace orrery::chart_test
