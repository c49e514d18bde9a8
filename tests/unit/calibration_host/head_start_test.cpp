#include "calibration/host/head_start.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace orrery::calibration::head_start_test {
namespace {

// A host that needs `launch_ns` for each launch, before a GPU whose queue holds `queue`: the
// next one waits until the delay is over.
struct Host {
  std::int64_t launch_ns = 3'000;
  int queue = 1'000;
  int launches_a_run = 1;

  struct Trial {
    HeadStart::Verdict verdict = HeadStart::Verdict::again;
    HeadStart::Batch batch;
    int attempts = 0;
  };
  Trial hand_over(HeadStart& head_start, HeadStart::Batch batch) const {
    Trial trial{HeadStart::Verdict::again, batch};
    while (trial.verdict == HeadStart::Verdict::again && trial.attempts < 100) {
      const int launches = trial.batch.samples * trial.batch.runs * launches_a_run;
      const std::int64_t delay_ns = head_start.delay_ns();
      std::int64_t host_ns = launches * launch_ns;
      if (launches > queue) host_ns = std::max(host_ns, delay_ns + 1);
      trial.verdict = head_start.judge(host_ns < delay_ns, host_ns, trial.batch);
      ++trial.attempts;
    }
    return trial;
  }
};

TEST(HeadStart, FewLaunchesAreInTimeAtOnce) {
  HeadStart head_start;
  const auto trial = Host{}.hand_over(head_start, {16, 1});
  EXPECT_EQ(trial.verdict, HeadStart::Verdict::counts);
  EXPECT_EQ(trial.attempts, 1);
  EXPECT_EQ(head_start.delay_ns(), 200'000);
}

TEST(HeadStart, SlowHostsGetMoreTimeAndTheWholeBatch) {
  HeadStart head_start;
  // 500 launches take 1.5 ms: 0.2 ms are not enough, twice what was needed is.
  const auto trial = Host{}.hand_over(head_start, {10, 50});
  EXPECT_EQ(trial.verdict, HeadStart::Verdict::counts);
  EXPECT_EQ(trial.attempts, 2);
  EXPECT_EQ(trial.batch.samples, 10);
  EXPECT_EQ(head_start.delay_ns(), 3'000'000);
  // And gives it back: the next one needs 48 us.
  Host{}.hand_over(head_start, {16, 1});
  EXPECT_EQ(head_start.delay_ns(), 200'000);
}

// A split product is two launches: 10 x 50 of them do not fit, 5 x 50 do.
TEST(HeadStart, FullQueuesShrinkTheSamplesAndThenTheRuns) {
  HeadStart head_start;
  Host host;
  host.launches_a_run = 3;
  auto trial = host.hand_over(head_start, {10, 50});
  EXPECT_EQ(trial.verdict, HeadStart::Verdict::counts);
  EXPECT_EQ(trial.batch.samples, 5);
  EXPECT_EQ(trial.batch.runs, 50);
  EXPECT_LT(head_start.delay_ns(), 20'000'000);

  host.launches_a_run = 300;
  trial = host.hand_over(head_start, {4, 8});
  EXPECT_EQ(trial.verdict, HeadStart::Verdict::counts);
  EXPECT_EQ(trial.batch.samples, 1);
  EXPECT_EQ(trial.batch.runs, 2);
}

TEST(HeadStart, WorkThatWaitsForTheGpuIsHopeless) {
  HeadStart head_start;
  Host host;
  host.launches_a_run = 2'000;  // One run alone overflows the queue.
  const auto trial = host.hand_over(head_start, {8, 4});
  EXPECT_EQ(trial.verdict, HeadStart::Verdict::hopeless);
  EXPECT_LT(trial.attempts, 30);
}

}  // namespace
}  // namespace orrery::calibration::head_start_test
