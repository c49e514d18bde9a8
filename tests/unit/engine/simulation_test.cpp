#include "sim/engine/simulation.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <stdexcept>

#include "sim/core/error.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::simulation_test {
namespace {

Task lasting(Seconds duration) {
  Task task;
  task.duration = duration;
  return task;
}

Task lasting(Ticks duration) { return lasting(duration.seconds()); }

// Requests come to a server one after another and are served in the order in which they come, each
// for as long. Nothing of it is known beforehand: an arrival adds its service and the next arrival.
class Queue : public Driver {
 public:
  Queue(std::vector<Ticks> gaps, Ticks service) : gaps_{std::move(gaps)}, service_{service} {}

  void begin(Simulation& simulation) { arrival_ = simulation.add(lasting(gaps_.front())); }

  void finished(Simulation& simulation, TaskId task) override {
    if (task != arrival_) return;
    arrived.push_back(simulation.now());
    // The service before may be over, under way or not even begun.
    const TaskId before = served.empty() ? task : served.back();
    served.push_back(simulation.add(lasting(service_), std::vector{before}));
    if (arrived.size() < gaps_.size()) arrival_ = simulation.add(lasting(gaps_[arrived.size()]));
  }

  std::vector<Ticks> arrived;
  std::vector<TaskId> served;

 private:
  std::vector<Ticks> gaps_;
  Ticks service_;
  TaskId arrival_;
};

// Two nodes of two GPUs; every port carries 1 GB/s in each direction.
class GrowingGraph : public ::testing::TestWithParam<Simulator> {
 protected:
  Flow flow(int from, int to, double bytes) {
    Flow flow;
    for (LinkId id : topology_.route(Rank{from}, Rank{to})) flow.route.push_back({id, 1});
    flow.bytes = Bytes{bytes};
    flow.rate = BytesPerSecond{1e12};
    return flow;
  }
  bool exact() const { return GetParam() == Simulator::own; }

  Topology topology_ = Topology::build(read_system("two-gpus", test_place), 64);
};

INSTANTIATE_TEST_SUITE_P(Engines, GrowingGraph,
                         ::testing::Values(Simulator::own, Simulator::simgrid), [](const auto& of) {
                           return of.param == Simulator::own ? "Own" : "Simgrid";
                         });

// Lindley's recursion: the wait of a request is that of the one before and its service, less the
// gap between them, if that is not negative. To the tick. And with random gaps it is an M/D/1
// queue, in which a request waits rho S / (2 (1 - rho)) in the mean (Pollaczek, Khinchine).
TEST_P(GrowingGraph, RequestsWaitAsLindleyAndPollaczekSay) {
  const std::size_t requests = exact() ? 200'000 : 20'000;
  const Ticks service = Ticks::nearest(Seconds{1e-3});
  const double load = 0.7;
  std::mt19937_64 random{14};
  std::exponential_distribution<double> gap{load / service.seconds().si()};
  std::vector<Ticks> gaps(requests);
  for (Ticks& each : gaps) each = Ticks::nearest(Seconds{gap(random)});

  Queue queue{gaps, service};
  Simulation simulation{topology_, {GetParam()}};
  queue.begin(simulation);
  const Timeline timeline = simulation.run(&queue);

  ASSERT_EQ(queue.served.size(), requests);
  Ticks wait;
  double sum = 0.0;
  for (std::size_t i = 0; i < requests; ++i) {
    if (i > 0) wait = std::max(Ticks{}, wait + service - gaps[i]);
    const Span& served = timeline.of(queue.served[i]);
    const Ticks waited = served.start - queue.arrived[i];
    if (exact()) {
      ASSERT_EQ(waited, wait) << i;
      ASSERT_EQ(served.finish - served.start, service) << i;
    } else {
      // SimGrid's clock is a double: some 30 s here, of which it keeps the last 4e-15 s.
      ASSERT_NEAR(waited.seconds().si(), wait.seconds().si(), 1e-9) << i;
    }
    sum += waited.seconds().si();
  }
  // Waits that follow each other are alike: of some 1 / (1 - rho)^2 requests one counts.
  const double mean = load * service.seconds().si() / (2.0 * (1.0 - load));
  EXPECT_NEAR(sum / static_cast<double>(requests), mean, exact() ? 0.03 * mean : 0.1 * mean);
}

// Clients that send a message, and the next one as soon as it has arrived, all out of one port. As
// many are always on their way as there are clients, so that each takes clients x bytes / port.
// Whom a client sends to next is its own choice: links are numbered while the simulation runs.
class Clients : public Driver {
 public:
  Clients(int clients, int messages, std::function<Flow(int)> to)
      : clients_{clients}, left_{clients * messages}, to_{std::move(to)} {}

  void begin(Simulation& simulation) {
    for (int i = 0; i < clients_; ++i) send(simulation);
  }
  void finished(Simulation& simulation, TaskId task) override {
    took.push_back(simulation.now() - simulation.span(task).start);
    if (left_ > 0) send(simulation);
  }

  std::vector<Ticks> took;

 private:
  void send(Simulation& simulation) {
    Task task;
    task.flows = {to_(--left_)};
    simulation.add(std::move(task));
  }

  int clients_;
  int left_;
  std::function<Flow(int)> to_;
};

TEST_P(GrowingGraph, ClientsShareThePortThatTheyAllUse) {
  const double bytes = 1e6;
  for (int clients : {1, 2, 5, 16, 17, 30}) {
    SCOPED_TRACE(clients);
    topology_ = Topology::build(read_system("two-gpus", test_place), 64);
    const int messages = 10;
    Clients driver{clients, messages,
                   [&](int number) { return flow(0, 2 + 2 * (number % 31), bytes); }};
    Simulation simulation{topology_, {GetParam()}};
    driver.begin(simulation);
    const Timeline timeline = simulation.run(&driver);
    ASSERT_EQ(driver.took.size(), static_cast<std::size_t>(clients * messages));
    for (const Ticks took : driver.took)
      EXPECT_NEAR(took.seconds().si(), clients * bytes / 1e9, messages * 1e-9);
    EXPECT_NEAR(timeline.makespan.seconds().si(), messages * clients * bytes / 1e9,
                messages * 1e-9);
  }
}

// A graph that is there at the beginning and one that grows are one graph: what is added waits for
// tasks of the first, finished or not.
TEST_P(GrowingGraph, WhatIsAddedWaitsForWhatWasThere) {
  TaskGraph graph;
  const TaskId soon = graph.add(lasting(Seconds{1.0}));
  const TaskId late = graph.add(lasting(Seconds{5.0}));
  const TaskId after_soon = graph.add(lasting(Seconds{0.5}));
  graph.depends(after_soon, soon);

  struct AddsTwo : Driver {
    AddsTwo(TaskId first, TaskId second) : soon{first}, late{second} {}
    void finished(Simulation& simulation, TaskId task) override {
      if (task != soon) return;
      after_both = simulation.add(lasting(Seconds{2.0}), std::vector{soon, late});
      at_once = simulation.add(lasting(Seconds{0.25}), std::vector{soon});
      join = simulation.add({}, std::vector{at_once, after_both});
    }
    TaskId soon, late, after_both, at_once, join;
  } driver{soon, late};
  const Timeline timeline = Simulation{graph, topology_, {GetParam()}}.run(&driver);

  ASSERT_EQ(timeline.spans.size(), 6u);
  EXPECT_EQ(driver.after_both, TaskId{3});
  const auto finish = [&](TaskId id) { return timeline.of(id).finish.seconds().si(); };
  EXPECT_NEAR(finish(after_soon), 1.5, 1e-9);
  EXPECT_NEAR(finish(driver.at_once), 1.25, 1e-9);
  EXPECT_NEAR(finish(driver.after_both), 7.0, 1e-9);
  EXPECT_NEAR(finish(driver.join), 7.0, 1e-9);
  EXPECT_NEAR(timeline.makespan.seconds().si(), 7.0, 1e-9);
}

// Three weeks in steps of a day, and a nanosecond in the end: which a double would still count, but
// not to the tick.
TEST_P(GrowingGraph, WeeksAreCountedAndMoreThanTheClockHoldsIsRefused) {
  const Ticks day = Ticks::nearest(Seconds{86400.0});
  const auto days = [&](int count) {
    TaskGraph graph;
    for (int i = 0; i < count; ++i) {
      const TaskId id = graph.add(lasting(day));
      if (i > 0) graph.depends(id, TaskId{i - 1});
    }
    const TaskId last = graph.add(lasting(Seconds{1e-9}));
    graph.depends(last, TaskId{count - 1});
    return Simulation{graph, topology_, {GetParam()}}.run();
  };
  const Timeline weeks = days(21);
  EXPECT_NEAR(weeks.makespan.seconds().si(), 21.0 * 86400.0, 1e-8);
  if (exact()) {
    EXPECT_EQ(weeks.makespan.count(), 21 * day.count() + 4398);  // 2^42 / 1e9, rounded.
  }
  try {
    days(25);
    FAIL() << "it went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::infeasible);
    EXPECT_STREQ(
        error.what(),
        "it takes more than 24 days, where the simulated clock ends; simulate less at once: "
        "fewer sequences in a step, or more GPUs");
  }
}

TEST_P(GrowingGraph, ATaskThatCannotStartIsNamed) {
  TaskGraph circle;
  const TaskId first = circle.add(lasting(Seconds{1.0}));
  const TaskId second = circle.add(lasting(Seconds{1.0}));
  circle.depends(first, second);
  circle.depends(second, first);
  circle.add(lasting(Seconds{1.0}));
  struct Adds : Driver {
    void finished(Simulation& simulation, TaskId task) override {
      if (task != TaskId{2}) return;
      Task waits;
      waits.owner = 5;
      waits.note = 8;
      simulation.add(waits, std::vector{TaskId{1}});
    }
  } driver;
  try {
    Simulation{circle, topology_, {GetParam()}}.run(&driver);
    FAIL() << "it finished";
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(
        error.what(),
        "deadlock: 3 of 4 tasks cannot finish; waiting: task 0 (owner 0, note -1, for 1 "
        "more) task 1 (owner 0, note -1, for 1 more) task 3 (owner 5, note 8, for 1 more)");
  }
}

}  // namespace
}  // namespace orrery::simulation_test
