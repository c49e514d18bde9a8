#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "sim/core/random.hpp"
#include "sim/reliability/training_run.hpp"

namespace orrery::run_figures_test {
namespace {

constexpr Micros second = 1'000'000;

// A drawn run: any size, spares, policy, tiers and rates, short and long repairs.
std::vector<RunTotals> drawn_runs(std::uint64_t drawn) {
  Random random{3, drawn, 0};
  const auto in = [&](double low, double high) { return low + (high - low) * random.unit(); };
  ReplicateSetup setup;
  const std::int64_t samples = 50 + static_cast<std::int64_t>(random.below(50));
  const auto step = static_cast<Micros>(in(0.5e6, 20e6));
  ReplicatePhase phase{
      samples * static_cast<std::int64_t>(in(1e3, 1e5)), {{step, samples}}, {}, {}};
  setup.elastic = random.below(2) == 1;
  setup.units = setup.groups = static_cast<int>(samples);
  if (setup.elastic)
    for (int away = 1; away < setup.groups; ++away)
      phase.by_away.push_back({step - away * step / 500, samples - away});
  setup.replicas_hold_all = random.below(2) == 1;
  setup.tiers = {{static_cast<Micros>(in(0.0, 5e6)), static_cast<Micros>(in(0.0, 100e6)),
                  static_cast<Micros>(in(0.0, 100e6))}};
  phase.every = {std::max<std::int64_t>(static_cast<std::int64_t>(100e6) / step + 1,
                                        static_cast<std::int64_t>(random.below(500)))};
  phase.slowed = {static_cast<Micros>(in(0.0, 0.2e6))};
  setup.phases = {phase};
  setup.causes = {
      {0, 600 * second, true, false, 0}, {0, 60 * second, false, false, 0}, {0, 0, false, true, 0}};
  setup.restart = static_cast<Micros>(in(1e6, 900e6));
  setup.regroup = static_cast<Micros>(in(1e6, 100e6));
  setup.spares = static_cast<int>(random.below(4));
  FailureDistribution distribution;
  distribution.per_day = {in(0.0, 3.0), in(0.0, 3.0), in(0.0, 1.0)};
  distribution.error.factor = in(1.0, 2.0);
  distribution.month = 29 * 86'400 * second;
  distribution.month_deviation = in(0.0, 1.0);
  // One repair in twenty is long.
  distribution.repair_us.assign(20, 1e9);
  distribution.repair_us.push_back(in(1e9, 5e12));
  return run_replicates(setup, distribution, drawn, 30);
}

// Goodput and what is lost add up to the time of all runs; goodput is the steps of all runs over
// their time; and what is shown of a figure lies within its own interval.
TEST(RunFigures, GoodputAndLossesAddUp) {
  int heavy = 0;
  for (std::uint64_t drawn = 0; drawn < 200; ++drawn) {
    const std::vector<RunTotals> runs = drawn_runs(drawn);
    const RunFigures figures = figures_of(runs);
    EXPECT_NEAR(std::accumulate(figures.shares.begin(), figures.shares.end(), 0.0), 1.0, 1e-12);
    EXPECT_EQ(figures.goodput.mean, figures.shares[0]) << drawn;
    double useful = 0.0, stepping = 0.0, all = 0.0;
    for (const RunTotals& run : runs) {
      useful += static_cast<double>(run[RunTime::productive]);
      stepping += run.ettr() * static_cast<double>(run.total());
      all += static_cast<double>(run.total());
    }
    EXPECT_NEAR(figures.goodput.mean, useful / all, 1e-12);
    EXPECT_NEAR(figures.ettr.mean, stepping / all, 1e-12);
    const double useful_days = useful / micros_per_day / static_cast<double>(runs.size());
    EXPECT_NEAR(figures.goodput.mean * figures.days.mean, useful_days, 1e-12 * useful_days);
    for (const ChanceRange& range :
         {figures.days, figures.goodput, figures.ettr, figures.interruptions}) {
      EXPECT_LE(range.low, range.typical());
      EXPECT_LE(range.typical(), range.high);
    }
    heavy += figures.days.heavy_tailed();
  }
  EXPECT_GT(heavy, 0);
}

// 39 runs of a day, and one of a hundred: their mean is longer than 9 in 10 of them.
TEST(RunFigures, OfAHeavyTailTheMedianIsTypical) {
  std::vector<RunTotals> runs(40);
  for (RunTotals& run : runs) run[RunTime::productive] = 86'400 * second;
  runs[7][RunTime::waiting] = 99LL * 86'400 * second;
  const RunFigures figures = figures_of(runs);
  EXPECT_NEAR(figures.days.mean, (39.0 + 100.0) / 40.0, 1e-12);
  EXPECT_TRUE(figures.days.heavy_tailed());
  EXPECT_EQ(figures.days.typical(), 1.0);
  EXPECT_NEAR(figures.goodput.mean, 40.0 / 139.0, 1e-12);
  EXPECT_EQ(figures.goodput.typical(), 1.0);
}

}  // namespace
}  // namespace orrery::run_figures_test
