#include <gtest/gtest.h>

#include <stdexcept>

#include "sim/core/ticks.hpp"
#include "sim/engine/simulation.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::execute_test {
namespace {

// two-gpus: nodes of two GPUs; every NVLink port and every NIC carries 1 GB/s in each direction.
// Rank 0 sends over NVLink to rank 1, and over its own NIC to rank 2.
class Execute : public ::testing::Test {
 protected:
  Flow flow(int from, int to, double bytes, double rate, int times = 1) {
    Flow flow;
    for (LinkId id : topology_.route(Rank{from}, Rank{to})) flow.route.push_back({id, times});
    flow.bytes = Bytes{bytes};
    flow.rate = BytesPerSecond{rate};
    return flow;
  }

  static Task transfer(double latency, std::vector<Flow> flows) {
    Task task;
    task.duration = Seconds{latency};
    task.flows = std::move(flows);
    return task;
  }

  static Task compute(double duration) {
    Task task;
    task.duration = Seconds{duration};
    return task;
  }

  Timeline run() { return execute(graph_, topology_); }
  double finish(TaskId id) {
    return run().spans[static_cast<std::size_t>(id.value)].finish.seconds().si();
  }

  Topology topology_ = Topology::build(read_system("two-gpus", test_place), 8);
  TaskGraph graph_;
};

constexpr double no_cap = 1e12;  // bytes/s, far above any link here.

// S / B = 1e9 B / 1e9 B/s.
TEST_F(Execute, AFlowAloneTakesBytesOverBandwidth) {
  graph_.add(transfer(0.0, {flow(0, 2, 1e9, no_cap)}));
  EXPECT_NEAR(run().makespan.seconds().si(), 1.0, 1e-9);
}

// alpha + S / B. A network that adds the latency twice, or scales it as the simulator's own default
// for campus networks does (13.01), is off by far more.
TEST_F(Execute, LatencyComesBeforeTheBytesOnce) {
  graph_.add(transfer(0.25, {flow(0, 2, 1e9, no_cap)}));
  EXPECT_NEAR(run().makespan.seconds().si(), 1.25, 1e-9);
}

// A flow may go slower than its links: S / rate = 1e9 / 4e8.
TEST_F(Execute, ARateCapHolds) {
  graph_.add(transfer(0.0, {flow(0, 2, 1e9, 4e8)}));
  EXPECT_NEAR(run().makespan.seconds().si(), 2.5, 1e-9);
}

// A cap above the wire changes nothing.
TEST_F(Execute, AWireSlowerThanTheCapDecides) {
  graph_.add(transfer(0.0, {flow(0, 2, 1e9, 2e9)}));
  EXPECT_NEAR(run().makespan.seconds().si(), 1.0, 1e-9);
}

// Max-min sharing with a cap: the capped flow keeps 0.25 GB/s, the other gets the rest.
//     0.25e9 B at 0.25 GB/s: 1 s.   1.5e9 B: 0.75e9 in the first second, 0.75e9 at 1 GB/s after it.
TEST_F(Execute, WhatACappedFlowLeavesGoesToTheOther) {
  const TaskId capped = graph_.add(transfer(0.0, {flow(0, 2, 0.25e9, 0.25e9)}));
  const TaskId other = graph_.add(transfer(0.0, {flow(0, 4, 1.5e9, no_cap)}));
  const Timeline timeline = run();
  EXPECT_NEAR(timeline.spans[static_cast<std::size_t>(capped.value)].finish.seconds().si(), 1.0,
              1e-9);
  EXPECT_NEAR(timeline.spans[static_cast<std::size_t>(other.value)].finish.seconds().si(), 1.75,
              1e-9);
}

// k flows leave one NIC at once; max-min sharing gives each B/k, so all end at alpha + k S / B.
TEST_F(Execute, KFlowsShareOneNicEqually) {
  for (int k : {1, 2, 3, 4, 6}) {
    SCOPED_TRACE(k);
    graph_ = TaskGraph{};
    for (int i = 0; i < k; ++i) graph_.add(transfer(1e-3, {flow(0, 2 + i, 1e8, no_cap)}));
    const Timeline timeline = run();
    for (const Span& span : timeline.spans) {
      EXPECT_EQ(span.start.seconds().si(), 0.0);
      EXPECT_NEAR(span.finish.seconds().si(), 1e-3 + k * 0.1, 1e-9);
    }
  }
}

// A NIC sends and receives at full rate at once: acknowledgements are free, wires full duplex.
TEST_F(Execute, DirectionsDoNotShare) {
  graph_.add(transfer(0.0, {flow(0, 2, 1e9, no_cap)}));
  graph_.add(transfer(0.0, {flow(2, 0, 1e9, no_cap)}));
  EXPECT_NEAR(run().makespan.seconds().si(), 1.0, 1e-9);
}

// The basis of folding: a flow that represents four equivalent ones crosses its link four times,
// and a flow of itself once. Five flows share 1 GB/s: 0.2 GB/s each, so that 1e9 B take 5 s.
TEST_F(Execute, ALinkNamedFourTimesCountsAsFourFlows) {
  graph_.add(transfer(0.0, {flow(0, 2, 1e9, no_cap, 4)}));
  graph_.add(transfer(0.0, {flow(0, 4, 1e9, no_cap, 1)}));
  const Timeline timeline = run();
  EXPECT_NEAR(timeline.spans[0].finish.seconds().si(), 5.0, 1e-9);
  EXPECT_NEAR(timeline.spans[1].finish.seconds().si(), 5.0, 1e-9);
}

// Flows that meet when one of them is under way, and a kernel that ends meanwhile. NIC 0 sends A to
// rank 2 from 0 s and B to rank 4 from 0.5 s; C, which cannot go faster than 0.3 GB/s, goes from
// rank 6 to 2 from 0.7 s; a kernel of 0.9 s is followed by E from rank 2 to 4. Rates in GB/s:
//
//              0 - 0.5   0.5 - 0.7   0.7 - 0.9   0.9 - 1.033   1.033 - 1.5   1.5 - 2.5   2.5 - 2.7
//     A (1 GB)       1         0.5         0.5           0.5           0.5
//     B (1 GB)                 0.5         0.5           0.5           0.5         0.5
//     C (0.1 GB)                           0.3           0.3
//     E (1 GB)                                           0.5           0.5         0.5           1
TEST_F(Execute, FlowsMeetUnderWay) {
  graph_.add(transfer(0.0, {flow(0, 2, 1e9, no_cap)}));
  graph_.add(transfer(0.5, {flow(0, 4, 1e9, no_cap)}));
  graph_.add(transfer(0.7, {flow(6, 2, 1e8, 3e8)}));
  const TaskId kernel = graph_.add(compute(0.9));
  const TaskId last = graph_.add(transfer(0.0, {flow(2, 4, 1e9, no_cap)}));
  graph_.depends(last, kernel);
  const Timeline timeline = run();
  const double expected[] = {1.5, 2.5, 0.7 + 1.0 / 3.0, 0.9, 2.7};
  for (std::size_t i = 0; i < 5; ++i)
    EXPECT_NEAR(timeline.spans[i].finish.seconds().si(), expected[i], 1e-9) << i;
  EXPECT_EQ(timeline.spans[4].start,
            Ticks::nearest(Seconds{0.9}));  // No kernel is rounded further.
}

// One after another on one link, each starting as the one before it arrives, and then two at once:
// 0.1 + 0.1 + 2 x 0.1.
TEST_F(Execute, FlowsThatFollowEachOtherDoNotMeet) {
  const TaskId first = graph_.add(transfer(0.0, {flow(0, 2, 1e8, no_cap)}));
  const TaskId second = graph_.add(transfer(0.0, {flow(0, 2, 1e8, no_cap)}));
  graph_.depends(second, first);
  for (int i = 0; i < 2; ++i)
    graph_.depends(graph_.add(transfer(0.0, {flow(0, 4 + i, 1e8, no_cap)})), second);
  EXPECT_NEAR(run().makespan.seconds().si(), 0.4, 1e-9);
  EXPECT_EQ(run().spans[1].finish, Ticks::nearest(Seconds{0.1}) + Ticks::nearest(Seconds{0.1}));
}

// A route may name a link twice: the flow crosses it twice, alone and concurrent with another.
TEST_F(Execute, AFlowMayCrossALinkTwice) {
  Flow twice = flow(0, 2, 1e9, no_cap);
  twice.route.push_back(twice.route.front());
  graph_.add(transfer(0.0, {twice}));
  EXPECT_NEAR(run().makespan.seconds().si(), 2.0, 1e-9);
  graph_.add(transfer(0.0, {flow(0, 4, 1e9, no_cap)}));  // 2 r + r = 1 GB/s.
  EXPECT_NEAR(run().makespan.seconds().si(), 3.0, 1e-9);
}

// A task with several flows ends with the last of them.
TEST_F(Execute, ATaskEndsWithItsLastFlow) {
  graph_.add(transfer(0.5, {flow(0, 1, 1e9, no_cap), flow(0, 2, 2e9, no_cap)}));
  EXPECT_NEAR(run().makespan.seconds().si(), 2.5, 1e-9);
}

// A flow of less than a byte is a flow.
TEST_F(Execute, FractionsOfAByteArrive) {
  graph_.add(transfer(0.0, {flow(0, 2, 0.3, no_cap)}));
  EXPECT_EQ(run().makespan, Ticks::nearest(Seconds{0.3e-9}));
}

// 1 s and 2 s in parallel, then a join, then 3 s: 2 + 3.
TEST_F(Execute, ATaskWaitsForAllBeforeIt) {
  const TaskId a = graph_.add(compute(1.0));
  const TaskId b = graph_.add(compute(2.0));
  Task gate;
  const TaskId join = graph_.add(gate);
  const TaskId last = graph_.add(compute(3.0));
  graph_.depends(join, a);
  graph_.depends(join, b);
  graph_.depends(last, join);
  const Timeline timeline = run();
  const auto span = [&](TaskId id) { return timeline.spans[static_cast<std::size_t>(id.value)]; };
  EXPECT_NEAR(span(a).finish.seconds().si(), 1.0, 1e-9);
  EXPECT_NEAR(span(join).start.seconds().si(), 2.0, 1e-9);
  EXPECT_EQ(span(join).start, span(join).finish);
  EXPECT_NEAR(span(last).start.seconds().si(), 2.0, 1e-9);
  EXPECT_NEAR(timeline.makespan.seconds().si(), 5.0, 1e-9);
}

TEST_F(Execute, AnEmptyGraphTakesNoTime) { EXPECT_EQ(run().makespan.seconds().si(), 0.0); }

// A recursion from each to the next would need some 20 MB of stack for this.
TEST_F(Execute, AHundredThousandJoinsInAChain) {
  TaskId previous = graph_.add(compute(1.0));
  for (int i = 0; i < 100'000; ++i) {
    Task gate;
    const TaskId next = graph_.add(gate);
    graph_.depends(next, previous);
    previous = next;
  }
  EXPECT_NEAR(finish(previous), 1.0, 1e-9);
}

// To the last tick, also after a run of some weeks. SimGrid's clock goes on from run to run, so
// that its double has fewer bits left for fractions of a second.
TEST_F(Execute, ManyRunsInOneProcessGiveTheSameAnswer) {
  TaskGraph long_one;
  for (int i = 0; i < 40; ++i) long_one.add(transfer(3e-3 * i, {flow(0, 2, 5e13 + i, 4e7 + i)}));
  for (int i = 0; i < 40; ++i)
    graph_.add(transfer(1e-3 * i, {flow(0, i % 3 ? 2 : 4, 1e8 / 3.0, i % 2 ? no_cap : 3e7 + i)}));
  graph_.add(compute(0.7));
  for (const Simulator simulator : {Simulator::own, Simulator::simgrid}) {
    const Timeline first = execute(graph_, topology_, simulator);
    if (simulator == Simulator::own) {
      EXPECT_GT(execute(long_one, topology_, simulator).makespan.seconds().si(), 1e6);
    }
    const Timeline again = execute(graph_, topology_, simulator);
    const double tolerance = simulator == Simulator::own ? 0.0 : 1e-9;
    for (std::size_t task = 0; task < first.spans.size(); ++task)
      EXPECT_NEAR(again.spans[task].finish.seconds().si(), first.spans[task].finish.seconds().si(),
                  tolerance);
  }
}

// Links of one run must not leak into the next, whose topology numbers its own from 0.
TEST_F(Execute, AnotherTopologyHasItsOwnLinks) {
  graph_.add(transfer(0.0, {flow(0, 1, 1e9, no_cap)}));
  EXPECT_NEAR(run().makespan.seconds().si(), 1.0, 1e-9);
  topology_ = Topology::build(read_system("four-by-four", test_place), 8);
  graph_ = TaskGraph{};
  graph_.add(transfer(0.0, {flow(0, 1, 1e9, no_cap)}));  // 10 GB/s there.
  EXPECT_NEAR(run().makespan.seconds().si(), 0.1, 1e-9);
}

TEST_F(Execute, ACircleIsADeadlockInWords) {
  Task a = compute(1.0);
  a.owner = 3;
  a.note = 7;
  const TaskId first = graph_.add(compute(1.0));
  const TaskId second = graph_.add(a);
  const TaskId third = graph_.add(compute(1.0));
  graph_.depends(second, first);
  graph_.depends(second, third);
  graph_.depends(third, second);
  try {
    run();
    FAIL() << "it finished";
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(
        error.what(),
        "deadlock: 2 of 3 tasks cannot finish; waiting: task 1 (owner 3, note 7, for 1 more) "
        "task 2 (owner 0, note -1, for 1 more)");
  }
  // And the engine is fit for the next graph.
  graph_ = TaskGraph{};
  graph_.add(compute(2.0));
  EXPECT_NEAR(run().makespan.seconds().si(), 2.0, 1e-9);
}

}  // namespace
}  // namespace orrery::execute_test
