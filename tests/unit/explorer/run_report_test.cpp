#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/explorer/reports.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::run_report_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TrainingRun answer() {
  const Scenario scenario =
      make_scenario(read_model("llama3-8b", test_place), read_system("dgx-h100", test_place),
                    plan_request(8, 2, 1, 256, 8192, ""), 512, test_place);
  RunQuestion question;
  question.tokens = 1e12;
  question.reliability = read_reliability("default", test_place);
  for (FailureCause& cause : question.reliability.causes) cause.per_gpu_day *= 4.0;
  question.policy.spares = 5;
  question.replicates = 50;
  return training_run(scenario, Seconds{2.0}, question, read_economics("h100-sxm", ""));
}

// Stretches of a log follow each other from 0 to the end of the run, and add up to the totals of
// each kind of lost time, in every replicate.
TEST(RunReport, LogsAddUpToTheirTotals) {
  const TrainingRun run = answer();
  ReplicateSetup setup = run.prepared.setup;
  setup.keeps_log = true;
  Micros waited = 0, redone = 0;
  for (std::uint64_t i = 0; i < run.runs.size(); ++i) {
    const RunTotals one =
        run_replicate(setup, FailureDraws{run.prepared.distribution, run.question.seed, i});
    EXPECT_EQ(one.of, run.runs[i].of);
    std::array<Micros, run_times> logged{};
    Micros now = 0;
    for (const RunStretch& stretch : one.log) {
      EXPECT_EQ(stretch.from, now);
      EXPECT_GT(stretch.to, stretch.from);
      logged[static_cast<std::size_t>(stretch.as)] += stretch.to - stretch.from;
      now = stretch.to;
    }
    EXPECT_EQ(now, one.total());
    for (const RunTime time :
         {RunTime::redone, RunTime::detecting, RunTime::waiting, RunTime::restarting})
      EXPECT_EQ(logged[static_cast<std::size_t>(time)], one[time]) << name(time);
    waited += one[RunTime::waiting];
    redone += one[RunTime::redone];
  }
  EXPECT_GT(waited, 0);
  EXPECT_GT(redone, 0);
}

TEST(RunReport, DrawsTheRunInTheMiddle) {
  const TrainingRun run = answer();
  const RunTotals one = median_run(run.prepared, run.question, run.runs);
  int shorter = 0;
  for (const RunTotals& other : run.runs) shorter += other.total() < one.total();
  EXPECT_EQ(shorter, 25);
}

TEST(RunReport, StandsAlone) {
  const TrainingRun run = answer();
  const std::string html =
      run_report(run, median_run(run.prepared, run.question, run.runs), {"orrery run --tokens 1T"});
  for (const char* heading : {"One run, from its first day to its last", "How many days",
                              "What is lost to what", "What would be saved"})
    EXPECT_THAT(html, HasSubstr(heading));
  const std::string said = html.substr(0, html.find("<script>"));  // Which is of all reports.
  for (const char* from_elsewhere : {"src=", "href=", "@import", "url("})
    EXPECT_THAT(said, Not(HasSubstr(from_elsewhere)));
  EXPECT_THAT(html, HasSubstr("orrery run --tokens 1T"));
}

}  // namespace
}  // namespace orrery::run_report_test
