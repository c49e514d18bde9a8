#include "sim/engine/execute.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/support/scenarios.hpp"

namespace orrery {
namespace {

// two-gpus: nodes of two GPUs; every NVLink port and every NIC carries 1 GB/s in each direction.
// Rank 0 sends over NVLink to rank 1, and over its own NIC to rank 2.
class Execute : public ::testing::Test {
 protected:
  Flow flow(int from, int to, double bytes, double rate, int times = 1) {
    Flow flow;
    for (LinkId id : topology_.route(Rank{from}, Rank{to})) flow.way.push_back({id, times});
    flow.bytes = Bytes{bytes};
    flow.rate = BytesPerSecond{rate};
    return flow;
  }

  static Task transfer(double latency, std::vector<Flow> flows) {
    Task task;
    task.kind = Task::Kind::transfer;
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
  double finish(TaskId id) { return run().spans[static_cast<std::size_t>(id.value)].finish.si(); }

  Topology topology_ = Topology::build(read_system("two-gpus", test_place), 8);
  TaskGraph graph_;
};

constexpr double no_cap = 1e12;  // bytes/s, far above any link here.

// S / B = 1e9 B / 1e9 B/s.
TEST_F(Execute, AFlowAloneTakesBytesOverBandwidth) {
  graph_.add(transfer(0.0, {flow(0, 2, 1e9, no_cap)}));
  EXPECT_NEAR(run().makespan.si(), 1.0, 1e-9);
}

// alpha + S / B. A network that adds the latency twice, or scales it as the simulator's own default
// for campus networks does (13.01), is off by far more.
TEST_F(Execute, LatencyComesBeforeTheBytesOnce) {
  graph_.add(transfer(0.25, {flow(0, 2, 1e9, no_cap)}));
  EXPECT_NEAR(run().makespan.si(), 1.25, 1e-9);
}

// A flow may go slower than its links: S / rate = 1e9 / 4e8.
TEST_F(Execute, ARateCapHolds) {
  graph_.add(transfer(0.0, {flow(0, 2, 1e9, 4e8)}));
  EXPECT_NEAR(run().makespan.si(), 2.5, 1e-9);
}

}  // namespace
}  // namespace orrery
