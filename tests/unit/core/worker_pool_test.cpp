#include "sim/core/worker_pool.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "sim/core/progress.hpp"
#include "tests/support/error_text.hpp"

namespace orrery::worker_pool_test {
namespace {

// Outcomes of tasks 0 .. count-1.
std::vector<Outcome> run(int workers, int count, const std::function<Answer(std::int64_t)>& work,
                         const WorkerLimits& limits = {}) {
  std::vector<Outcome> outcomes;
  std::int64_t given = 0;
  run_tasks(
      workers, limits,
      [&]() -> std::optional<std::int64_t> {
        if (given == count) return std::nullopt;
        return given++;
      },
      work, [&](const Outcome& outcome) { return outcomes.push_back(outcome), true; });
  return outcomes;
}

Answer square(std::int64_t task) { return {std::to_string(task * task), false}; }

void expect_squares(const std::vector<Outcome>& outcomes, std::size_t count) {
  ASSERT_EQ(outcomes.size(), count);
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(outcomes[i].task, static_cast<std::int64_t>(i));
    EXPECT_EQ(outcomes[i].bytes, std::to_string(i * i));
    EXPECT_EQ(outcomes[i].failure, "");
  }
}

TEST(WorkerPool, DeliversInOrderWhateverTheNumberOfWorkers) {
  for (int workers : {1, 2, 3, 8})
    for (int count : {0, 1, 2, 7, 3000}) {
      SCOPED_TRACE(std::to_string(workers) + " workers, " + std::to_string(count) + " tasks");
      expect_squares(run(workers, count, square), static_cast<std::size_t>(count));
    }
}

// Lets this process have so many more open files; a worker's socket takes two while it is made, and
// then one.
class FewerFiles {
 public:
  explicit FewerFiles(int more) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::dup(STDERR_FILENO);
    ::close(next);
    rlimit now = before_;
    now.rlim_cur = static_cast<rlim_t>(next + more);
    ::setrlimit(RLIMIT_NOFILE, &now);
  }
  ~FewerFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST(WorkerPool, AsManyWorkersAsTheMachineAllowsDoTheWork) {
  for (const int more : {2, 3, 5}) {
    const FewerFiles files{more};
    expect_squares(run(8, 100, square), 100);
    const auto spent = [](std::int64_t task) { return Answer{square(task).bytes, true}; };
    expect_squares(run(8, 100, spent), 100);
  }
}

TEST(WorkerPool, AMachineThatAllowsNoneIsSaidToBeOne) {
  const FewerFiles files{1};
  EXPECT_EQ(error_text([] { run(8, 100, square); }),
            "no worker can be started: no socket for a worker: Too many open files; raise the "
            "limits on processes and open files (ulimit -u, ulimit -n)");
}

// The first task would last for ten minutes. Ctrl-C when the last of the others is delivered loses
// none of them, where in order none would ever have been.
TEST(WorkerPool, OutcomesAreDeliveredAsTheyFinishIfAskedFor) {
  const Interruption interruption;
  std::vector<std::int64_t> delivered;
  std::int64_t given = 0;
  run_tasks(
      2, {},
      [&]() -> std::optional<std::int64_t> {
        return given < 300 ? std::optional{given++} : std::nullopt;
      },
      [](std::int64_t task) {
        if (task == 0) sleep(600);
        return square(task);
      },
      [&](const Outcome& outcome) {
        EXPECT_EQ(outcome.bytes, square(outcome.task).bytes);
        delivered.push_back(outcome.task);
        if (delivered.size() == 299) ::raise(SIGINT);
        return true;
      },
      Delivery::as_finished);
  ASSERT_EQ(delivered.size(), 299u);
  for (std::size_t i = 0; i < delivered.size(); ++i)
    EXPECT_EQ(delivered[i], static_cast<std::int64_t>(i) + 1);
}

TEST(WorkerPool, UnevenTasksStayInOrder) {
  const auto uneven = [](std::int64_t task) {
    if (task % 7 == 0) usleep(3000);
    return square(task);
  };
  expect_squares(run(3, 100, uneven), 100);
}

TEST(WorkerPool, AnswersLargerThanASocketArriveWhole) {
  const std::vector<Outcome> outcomes = run(2, 5, [](std::int64_t task) {
    return Answer{std::string(3'000'000, static_cast<char>('a' + task)), false};
  });
  ASSERT_EQ(outcomes.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i)
    EXPECT_EQ(outcomes[i].bytes, std::string(3'000'000, static_cast<char>('a' + i)));
}

TEST(WorkerPool, WorkIsDoneElsewhere) {
  static int here = 0;
  const pid_t self = getpid();
  const std::vector<Outcome> outcomes = run(2, 20, [self](std::int64_t) {
    ++here;
    return Answer{getpid() == self ? "parent" : "child", false};
  });
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.bytes, "child");
  EXPECT_EQ(here, 0);
}

// A spent process is never used again: each task finds the parent's state, not the last task's.
TEST(WorkerPool, ASpentWorkerIsReplaced) {
  static int ran = 0;
  const std::vector<Outcome> outcomes = run(2, 50, [](std::int64_t task) {
    // Short tasks first, so that several wait for one worker when it is spent.
    return Answer{std::to_string(ran++), task >= 30};
  });
  ASSERT_EQ(outcomes.size(), 50u);
  for (std::size_t i = 0; i < 50; ++i) EXPECT_EQ(outcomes[i].failure, "") << i;
  const std::vector<Outcome> all_spent = run(2, 50, [](std::int64_t) {
    return Answer{std::to_string(ran++), true};
  });
  for (const Outcome& outcome : all_spent) EXPECT_EQ(outcome.bytes, "0");
}

TEST(WorkerPool, ACrashFailsItsTaskAlone) {
  for (int workers : {1, 2, 4}) {
    const std::vector<Outcome> outcomes = run(workers, 200, [](std::int64_t task) {
      if (task % 50 == 13) ::kill(getpid(), SIGKILL);
      if (task % 50 == 14) ::_exit(9);
      if (task % 50 == 15) throw std::runtime_error{"lost"};
      if (task % 50 == 16) throw std::bad_alloc{};
      return square(task);
    });
    ASSERT_EQ(outcomes.size(), 200u);
    for (std::size_t i = 0; i < 200; ++i) {
      SCOPED_TRACE(i);
      EXPECT_EQ(outcomes[i].task, static_cast<std::int64_t>(i));
      const std::size_t kind = i % 50;
      EXPECT_EQ(outcomes[i].failure, kind == 13   ? "ended by signal 9 (Killed)"
                                     : kind == 14 ? "ended with exit code 9"
                                     : kind == 15 ? "internal error: lost"
                                     : kind == 16 ? "ran out of memory"
                                                  : "");
      EXPECT_EQ(outcomes[i].stopped, kind == 13 || kind == 16);
      EXPECT_EQ(outcomes[i].bytes, outcomes[i].failure.empty() ? std::to_string(i * i) : "");
    }
  }
}

// A kill from outside is no property of the task: another worker gets it.
TEST(WorkerPool, AKilledWorkersTaskIsDoneAllTheSame) {
  char once[] = "/tmp/orrery-once-XXXXXX";
  const int file = ::mkstemp(once);
  ASSERT_GE(file, 0);
  ::close(file);
  const std::vector<Outcome> outcomes = run(2, 60, [&](std::int64_t task) {
    if (task == 30 && ::unlink(once) == 0) ::kill(getpid(), SIGKILL);
    return square(task);
  });
  for (std::size_t i = 0; i < 60; ++i) {
    EXPECT_EQ(outcomes[i].failure, "") << i;
    EXPECT_EQ(outcomes[i].bytes, std::to_string(i * i));
  }
}

// A group is asked to end: workers go on until their parent ends.
TEST(WorkerPool, WorkersLeaveTheEndToTheirParent) {
  const std::vector<Outcome> outcomes = run(2, 40, [](std::int64_t task) {
    for (const int signal : {SIGTERM, SIGINT, SIGHUP})
      if (task % 10 == 3) ::kill(getpid(), signal);
    return square(task);
  });
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.failure, "") << outcome.task;
}

TEST(WorkerPool, ATaskThatTakesTooLongIsStopped) {
  WorkerLimits limits;
  limits.time = Seconds{0.2};
  const std::vector<Outcome> outcomes = run(
      2, 40,
      [](std::int64_t task) {
        if (task == 20) pause();
        return square(task);
      },
      limits);
  ASSERT_EQ(outcomes.size(), 40u);
  for (std::size_t i = 0; i < 40; ++i)
    EXPECT_EQ(outcomes[i].failure, i == 20 ? "took longer than 0.2 s" : "") << i;
}

#if !defined(__SANITIZE_ADDRESS__)  // Its shadow memory is terabytes of address space.
TEST(WorkerPool, ATaskThatNeedsTooMuchMemoryFails) {
  WorkerLimits limits;
  limits.memory = Bytes{2e9};
  const std::vector<Outcome> outcomes = run(
      2, 10,
      [](std::int64_t task) {
        std::string large;
        if (task == 4) large.resize(3'000'000'000);
        return square(task);
      },
      limits);
  ASSERT_EQ(outcomes.size(), 10u);
  for (std::size_t i = 0; i < 10; ++i)
    EXPECT_EQ(outcomes[i].failure, i == 4 ? "ran out of memory" : "") << i;
}
#endif

TEST(WorkerPool, DeliveryMayEndTheRun) {
  std::int64_t given = 0;
  std::vector<std::int64_t> delivered;
  run_tasks(
      2, {}, [&] { return std::optional{given++}; }, square,
      [&](const Outcome& outcome) {
        delivered.push_back(outcome.task);
        return outcome.task < 99;
      });
  EXPECT_EQ(delivered.size(), 100u);
  EXPECT_LT(given, 100 + 2 * 256 + 2);  // No more than the window was fetched ahead.
}

TEST(WorkerPool, OneSlowTaskDoesNotMakeTheOthersPileUp) {
  std::int64_t given = 0;
  std::int64_t furthest_ahead = 0;
  std::int64_t delivered = 0;
  run_tasks(
      2, {},
      [&]() -> std::optional<std::int64_t> {
        furthest_ahead = std::max(furthest_ahead, given - delivered);
        if (given == 5000) return std::nullopt;
        return given++;
      },
      [](std::int64_t task) {
        if (task == 0) usleep(200'000);
        return square(task);
      },
      [&](const Outcome&) { return ++delivered, true; });
  EXPECT_EQ(delivered, 5000);
  EXPECT_LE(furthest_ahead, 512);
}

}  // namespace
}  // namespace orrery::worker_pool_test
