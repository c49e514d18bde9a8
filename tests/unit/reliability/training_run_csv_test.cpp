#include <gtest/gtest.h>

#include "sim/reliability/reliability_text.hpp"

namespace orrery::training_run_csv_test {
namespace {

// Two days, of which one and a half are steps that last, and two hours of them slow.
TEST(TrainingRunCsv, SaysWhereTheTimeOfEachRunWent) {
  RunTotals run;
  run[RunTime::productive] = 34 * 3600 * Micros{1'000'000};
  run[RunTime::redone] = 8 * 3600 * Micros{1'000'000};
  run[RunTime::restarting] = 4 * 3600 * Micros{1'000'000};
  run[RunTime::slow_gpus] = 2 * 3600 * Micros{1'000'000};
  run.interruptions = {2, 1};
  run.rate_factor = 1.25;
  EXPECT_EQ(training_run_csv({run}),
            "replicate,days,interruptions,rate_factor,ettr,goodput,productive_s,slowed_by_writes_s,"
            "replicas_away_s,redone_s,saving_s,detecting_s,waiting_s,restarting_s,"
            "slow_gpus_s\n"
            "0,2.0,3,1.25,0.75,0.708333333,122400.0,0.0,0.0,28800.0,0.0,0.0,0.0,14400.0,7200.0\n");
}

}  // namespace
}  // namespace orrery::training_run_csv_test
