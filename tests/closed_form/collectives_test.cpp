// Collectives on links of round numbers and ideal constants (test-gpu): formula and SimGrid alike.
#include <gtest/gtest.h>

#include "sim/collectives/collective_flows.hpp"
#include "sim/collectives/isolated_collective.hpp"
#include "tests/closed_form/hand_made.hpp"
#include "tests/support/fabrics.hpp"

namespace orrery::collectives_test {
namespace {

// The time of the plan's only tensor group, ranks 0 .. tp - 1: by formula, and by simulation of
// every rank's flows.
struct Times {
  double formula;
  double simulated;
};

Times times(const System& system, int tp, CollectiveKind kind, double bytes) {
  Plan plan;
  plan.tp = tp;
  const Placement placement{plan, system};
  const CollectiveCost cost = CollectiveTime{system}(kind, Bytes{bytes}, placement.shapes().tensor);
  Topology topology = Topology::build(system, tp);
  Task task;
  task.duration = cost.latency;
  task.flows = collective_flows(topology, RankClasses::unfolded(placement),
                                placement.group(GroupKind::tensor, Rank{0}), cost);
  TaskGraph graph;
  graph.add(std::move(task));
  return {cost.time().si(), execute(graph, topology).makespan.seconds().si()};
}

void expect(const Times& times, double seconds) {
  EXPECT_NEAR(times.formula, seconds, 1e-12);
  EXPECT_NEAR(times.simulated, seconds, 2e-9);  // Bytes are rounded up to whole ones.
}

// In a node of n GPUs a ring's rounds send S/n each: n-1 rounds to reduce and scatter, n-1 to
// gather. Each round costs a hop of 1 us.
TEST(Collectives, RingInsideANode) {
  for (int n : {2, 3, 4}) {
    SCOPED_TRACE(n);
    const System system = read_system("four-by-four", test_place);  // 10 GB/s a port.
    const double bytes = 1.2e9;
    const double half = (n - 1) * 1e-6 + bytes * (n - 1) / n / 10e9;
    expect(times(system, n, CollectiveKind::all_gather, bytes), half);
    expect(times(system, n, CollectiveKind::reduce_scatter, bytes), half);
    expect(times(system, n, CollectiveKind::all_reduce, bytes), 2 * half);
  }
}

TEST(Collectives, TwoGpus) {
  const System system = read_system("two-gpus", test_place);              // 1 GB/s, 1 us.
  expect(times(system, 2, CollectiveKind::all_reduce, 1e9), 2e-6 + 1.0);  // 2 (n-1)/n = 1.
  expect(times(system, 2, CollectiveKind::all_gather, 1e9), 1e-6 + 0.5);
}

// k nodes of four, four NICs of 1 GB/s each: four rings, each out of a node by another NIC, so that
// a NIC carries a quarter of what a ring of one NIC would. Of n-1 rounds k-1 cross the network.
TEST(Collectives, RingOverNodes) {
  const System system = read_system("four-by-four", test_place);
  for (int nodes : {2, 3, 4}) {
    SCOPED_TRACE(nodes);
    const int n = 4 * nodes;
    const double bytes = 4.8e9;
    const double wire = bytes * (n - 1) / n;
    const double latency = (nodes - 1) * 10e-6 + (n - nodes) * 1e-6;
    // NIC: wire / 4 / 1 GB/s. NVLink: 3/4 wire / 10 GB/s, which is less.
    expect(times(system, n, CollectiveKind::all_gather, bytes), latency + wire / 4 / 1e9);
    expect(times(system, n, CollectiveKind::reduce_scatter, bytes), latency + wire / 4 / 1e9);
  }
}

// All-reduce over many nodes: NCCL takes a double binary tree where its latency is less. Twice
// log2(nodes) network hops and 3 hops inside a node:
//     16 ranks: ring 6 x 10 + 24 x 1 = 84 us, tree 2 (2 x 10 + 3 x 1) = 46 us.
TEST(Collectives, TreeLatencyOverNodes) {
  System system = read_system("four-by-four", test_place);
  const double bytes = 4.8e9;
  expect(times(system, 16, CollectiveKind::all_reduce, bytes),
         46e-6 + 2 * bytes * 15 / 16 / 4 / 1e9);
  // NCCL's tuner takes the tree for its latency, and so for small messages.
  const auto algorithm = [&](double small, GroupShape group) {
    return CollectiveTime{system}(CollectiveKind::all_reduce, Bytes{small}, group).algorithm;
  };
  EXPECT_EQ(algorithm(1e3, {16, 4, 4}), "tree");
  EXPECT_EQ(algorithm(bytes, {16, 4, 4}), "ring");
  // Two single GPUs: one hop each way, for ring and tree alike. (The slowest channels that NCCL's
  // search tries are too coarse for the NICs of 1 GB/s.)
  system.nic = BytesPerSecond{12.5e9};
  EXPECT_EQ(algorithm(1e3, {2, 2, 1}), "ring");
}

// The slower of the two kinds of links decides: NICs of 100 GB/s leave NVLink the bottleneck.
TEST(Collectives, TheSlowerLinkDecides) {
  System system = read_system("four-by-four", test_place);
  system.nic = BytesPerSecond{100e9};
  const double wire = 4.8e9 * 7 / 8;
  expect(times(system, 8, CollectiveKind::all_gather, 4.8e9), 10e-6 + 6e-6 + wire * 3 / 4 / 10e9);
}

// Four nodes of four, one spine that carries all: a hop between leaves crosses two switches more,
// of 1 us each. Of the ring's four hops 3 rounds cross all but the shortest:
//     a node a leaf     4 x 2 us less 2 us        over 3 rounds: 6 us
//     two nodes a leaf  0 + 2 + 0 + 2 us less 0:                 4 us
TEST(Collectives, HopsOfTheFabric) {
  const double bytes = 4.8e9;
  const double one_switch = 3 * 10e-6 + 12e-6 + bytes * 15 / 16 / 4 / 1e9;
  for (const auto& [nodes_per_leaf, further] : {std::pair{1, 6e-6}, {2, 4e-6}, {4, 0.0}}) {
    SCOPED_TRACE(nodes_per_leaf);
    const System system = leaf_spine(nodes_per_leaf, 1, 8e9);
    const IsolatedCollective gather{CollectiveKind::all_gather, 16, 4, Bytes{bytes}};
    const IsolatedCollectiveTime result = run_alone(gather, system);
    expect({result.cost.time().si(), result.time.si()}, one_switch + further);
  }
}

// GPUs that share a NIC get their share of it: two of four send at 0.5 GB/s each.
TEST(Collectives, SharedNics) {
  System system = read_system("four-by-four", test_place);
  system.nics_per_node = 2;
  const double wire = 4.8e9 * 7 / 8;
  expect(times(system, 8, CollectiveKind::all_gather, 4.8e9), 16e-6 + wire / 4 / 0.5e9);
}

}  // namespace
}  // namespace orrery::collectives_test
