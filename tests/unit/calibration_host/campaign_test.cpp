#include "calibration/host/campaign.hpp"

#include <gtest/gtest.h>

#include "calibration/host/work_list.hpp"

namespace orrery::calibration::campaign_test {
namespace {

// A GPU on paper: a case takes m us at full clock and a second of measuring; the clock may fall.
class PaperBench : public Bench {
 public:
  Measurement measure(const Case& what, const StoppingLimits& limits) override {
    measured.push_back(what.size("m"));
    limits_given.push_back(limits.time_s);
    clock_s += seconds_a_case;
    if (static_cast<int>(measured.size()) == interrupt_after) stopped = true;
    Measurement one;
    one.what = what;
    if (what.size("m") == wrong || what.size("m") == deadly) {
      one.outcome = Outcome::failed;
      one.reason = what.size("m") == wrong ? "wrong result" : "an illegal access";
      is_lost = what.size("m") == deadly;
      return one;
    }
    one.cold = summarize({static_cast<double>(what.size("m")) * slowdown()});
    return one;
  }
  double reference_us() override {
    EXPECT_FALSE(is_lost) << "a GPU that no longer answers is asked";
    return 100.0 * slowdown();
  }
  double now_s() override { return clock_s; }
  void rest(double seconds) override { clock_s += seconds, rested = true; }
  bool interrupted() override { return stopped; }
  bool lost() override { return is_lost; }

  double slowdown() const { return clock_s >= hot_from_s && !(rested && rest_helps) ? 1.2 : 1.0; }

  std::vector<std::int64_t> measured;
  std::vector<double> limits_given;
  double clock_s = 50.0, seconds_a_case = 1.0, hot_from_s = 1e9;
  int interrupt_after = -1;
  std::int64_t wrong = -1, deadly = -1;
  bool is_lost = false, stopped = false, rested = false, rest_helps = true;
};

std::vector<Case> products(int count) {
  std::vector<Case> cases;
  for (int i = 1; i <= count; ++i)
    cases.push_back(make_case("gemm", {"forward", "bf16"}, {i, 8, 8}));
  return cases;
}

struct Trial {
  Record record;
  CampaignPlan plan;
  PaperBench bench;
  int saves = 0;
  std::vector<double> left_s;

  CampaignEnd operator()() {
    return run_campaign(
        record, plan, bench, [&](const Record&) { ++saves; },
        [&](const Progress& progress) { left_s.push_back(progress.left_s); });
  }
};

TEST(Campaign, MeasuresEverythingOnce) {
  Trial run;
  run.plan.cases = products(25);
  const CampaignEnd end = run();
  EXPECT_EQ(end.measured, 25);
  EXPECT_EQ(end.left, 0);
  EXPECT_EQ(run.bench.measured.size(), 25u);
  // Checks at 0, 10, 20 and 25 s.
  ASSERT_EQ(run.record.reference.size(), 4u);
  EXPECT_DOUBLE_EQ(run.record.reference[1].at_s, 10.0);
  EXPECT_EQ(run.saves, 26);  // After each, settled or not, and when the last is settled.
  EXPECT_DOUBLE_EQ(run.left_s.front(), 24.0);
  EXPECT_DOUBLE_EQ(run.left_s.back(), 0.0);
}

// Killed after any of them, the disk has all so far, with the slowdown of the last check.
TEST(Campaign, AKilledRunLosesNothing) {
  Trial run;
  run.plan.cases = products(25);
  std::vector<std::size_t> on_disk;
  run_campaign(
      run.record, run.plan, run.bench,
      [&](const Record& so_far) {
        on_disk.push_back(so_far.measurements.size());
        for (const Measurement& one : so_far.measurements) EXPECT_EQ(one.reference_slowdown, 1.0);
      },
      [](const Progress&) {});
  ASSERT_EQ(on_disk.size(), 26u);
  for (std::size_t i = 0; i < 25; ++i) EXPECT_EQ(on_disk[i], i + 1);
  EXPECT_EQ(on_disk[25], 25u);
  EXPECT_EQ(run.record.measurements.size(), 25u);
}

TEST(Campaign, WhatOtherRecordsHoldIsNotMeasuredAgain) {
  Trial run;
  run.plan.cases = products(5);
  run.plan.done = {products(5)[1].id(), products(5)[3].id(), "something else"};
  EXPECT_EQ(run().measured, 3);
  EXPECT_EQ(run.bench.measured, (std::vector<std::int64_t>{1, 3, 5}));
}

TEST(Campaign, TheBudgetEndsItAndIsShared) {
  Trial run;
  run.plan.cases = products(100);
  run.plan.budget_s = 10.0;
  const CampaignEnd end = run();
  EXPECT_EQ(end.measured, 10);
  EXPECT_EQ(end.left, 90);
  EXPECT_FALSE(end.interrupted);
  EXPECT_DOUBLE_EQ(run.bench.limits_given.front(), 0.1);  // 10 s for 100 cases.
  EXPECT_DOUBLE_EQ(run.bench.limits_given.back(), 0.05);  // 1 s for 91: the least, 1 s / 20.
}

TEST(Campaign, WithoutABudgetTheLimitIsTheRecords) {
  Trial run;
  run.plan.cases = products(3);
  run.record.limits.time_s = 0.5;
  run();
  EXPECT_EQ(run.bench.limits_given, (std::vector<double>{0.5, 0.5, 0.5}));
}

// Interrupted after 7 of 20, written, read, continued: every case once, the clock goes on.
TEST(Campaign, AnInterruptedRunResumes) {
  Trial first;
  first.record.machine.gpu = "paper";
  first.record.machine.multiprocessors = 1;
  first.record.machine.memory_bytes = 1;
  first.plan.cases = products(20);
  first.bench.interrupt_after = 7;
  const CampaignEnd interrupted = first();
  EXPECT_TRUE(interrupted.interrupted);
  EXPECT_EQ(interrupted.measured, 7);
  EXPECT_EQ(interrupted.left, 13);

  Trial second;
  second.record = parse_record(record_json(first.record), "record.json");
  second.plan.cases = products(20);
  const CampaignEnd end = second();
  EXPECT_EQ(end.measured, 20);
  EXPECT_EQ(second.bench.measured.size(), 13u);
  EXPECT_EQ(second.bench.measured.front(), 8);
  for (std::size_t i = 1; i < second.record.reference.size(); ++i)
    EXPECT_GE(second.record.reference[i].at_s, second.record.reference[i - 1].at_s);

  Trial third;  // Nothing is left.
  third.record = second.record;
  third.plan.cases = products(20);
  EXPECT_EQ(third().measured, 20);
  EXPECT_TRUE(third.bench.measured.empty());
}

// From 15 s on the GPU runs at 1/1.2 of its clock. Checks at 0, 10, 20, 30: what was measured
// between 10 and 20 s and after is suspect. A rest helps, so that these get their true times.
TEST(Campaign, ThrottledCasesAreMeasuredAgainAfterARest) {
  Trial run;
  run.plan.cases = products(30);
  run.bench.hot_from_s = 50.0 + 15.0;
  run();
  EXPECT_EQ(run.bench.measured.size(), 30u + 20u);
  ASSERT_EQ(run.record.measurements.size(), 30u);
  for (const Measurement& one : run.record.measurements) {
    EXPECT_DOUBLE_EQ(one.cold->median_us, static_cast<double>(one.what.size("m")));
    EXPECT_DOUBLE_EQ(one.reference_slowdown, 1.0);
  }
}

TEST(Campaign, AGpuThatStaysHotIsNotTriedForever) {
  Trial run;
  run.plan.cases = products(30);
  run.bench.hot_from_s = 50.0 + 15.0;
  run.bench.rest_helps = false;
  run();
  EXPECT_EQ(run.bench.measured.size(), 31u);
  EXPECT_DOUBLE_EQ(run.record.measurements[9].reference_slowdown, 1.0);
  EXPECT_DOUBLE_EQ(run.record.measurements[10].reference_slowdown, 1.2);
  EXPECT_DOUBLE_EQ(run.record.measurements[29].reference_slowdown, 1.2);
}

TEST(Campaign, AFailedCaseIsKeptWithItsReasonAndNotRepeated) {
  Trial run;
  run.plan.cases = products(5);
  run.bench.wrong = 3;
  const CampaignEnd end = run();
  EXPECT_EQ(end.measured, 4);
  EXPECT_EQ(end.failed, 1);
  EXPECT_EQ(run.record.measurements[2].reason, "wrong result");
}

// The 4th of 6 cases kills the GPU: what was measured stays, and a new process passes it over.
TEST(Campaign, ALostGpuLosesNothingElse) {
  Trial first;
  first.plan.cases = products(6);
  first.bench.deadly = 4;
  CampaignEnd end = first();
  EXPECT_TRUE(end.lost);
  EXPECT_EQ(end.measured, 3);
  EXPECT_EQ(end.failed, 1);
  EXPECT_EQ(end.left, 2);
  EXPECT_EQ(first.saves, 4);
  EXPECT_EQ(first.record.measurements[3].reason, "an illegal access");

  Trial second;
  second.record = first.record;
  second.plan = first.plan;
  second.bench.deadly = 4;
  end = second();
  EXPECT_FALSE(end.lost);
  EXPECT_EQ(second.bench.measured, (std::vector<std::int64_t>{5, 6}));
  EXPECT_EQ(end.measured, 5);
  EXPECT_EQ(end.left, 0);
}

TEST(Campaign, ProgressIsOneLine) {
  Measurement one;
  one.what = products(1)[0];
  one.cold = summarize({812.3});
  EXPECT_EQ(progress_text({&one, 12, 240, 65.0}),
            "12 of 240  1:05 left  gemm forward bf16 m=1 n=8 k=8  812.30 us +-100.0 %");
  one.outcome = Outcome::skipped;
  one.reason = "no fp8 units";
  EXPECT_EQ(progress_text({&one, 1, 2, 3.0}),
            "1 of 2  0:03 left  gemm forward bf16 m=1 n=8 k=8  skipped: no fp8 units");
}

TEST(ReferenceTrack, IsTheSlowerOfTheLastTwoChecks) {
  ReferenceTrack track;
  EXPECT_DOUBLE_EQ(track.latest_slowdown(), 1.0);
  track.add(0.0, 110.0);
  EXPECT_DOUBLE_EQ(track.latest_slowdown(), 1.0);
  track.add(10.0, 100.0);  // A GPU that warms up: the first was the slow one.
  EXPECT_DOUBLE_EQ(track.latest_slowdown(), 1.1);
  track.add(20.0, 104.0);
  EXPECT_DOUBLE_EQ(track.latest_slowdown(), 1.04);
}

}  // namespace
}  // namespace orrery::calibration::campaign_test
