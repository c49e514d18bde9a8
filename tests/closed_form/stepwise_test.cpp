// One flow a hop against the rounds that it represents, simulated one by one
// (docs/explanation/simulation.md).
#include <gtest/gtest.h>

#include <cmath>

#include "sim/collectives/collective_flows.hpp"
#include "sim/collectives/collective_program.hpp"
#include "sim/engine/simulation.hpp"
#include "sim/nccl/collective_cost.hpp"
#include "tests/support/fabrics.hpp"
#include "tests/support/programs.hpp"

namespace orrery::stepwise_test {
namespace {

constexpr double tensor = 1e9;

// One GPU a node with a NIC of 1 GB/s, no latencies: only sharing can differ.
System single_gpu_nodes() {
  System system = fabric_system(FabricLayout::single_switch);
  system.gpus_per_node = system.nvlink_domain = system.nics_per_node = 1;
  system.scale_up_latency = system.network_latency = Seconds{};
  return system;
}

System with_half_speed_nic(System system) {
  LinkOverride slow;
  slow.link = "node0.nic0";
  slow.bandwidth = 0.5 * system.nic;
  system.link_overrides.push_back(slow);
  return system;
}

std::vector<int> in_order(int ranks) {
  std::vector<int> ring;
  for (int i = 0; i < ranks; ++i) ring.push_back(i);
  return ring;
}

// A ring over all but the last rank: its rounds are longer and out of step with the other's, and
// two hops of that are not shared.
std::vector<int> all_but_one(int ranks) { return in_order(ranks - 1); }

double stepwise(const System& system, const CollectiveProgram& program) {
  const Topology topology = Topology::build(system, program.ranks);
  const MessagePrices prices{Seconds{}, Seconds{}, system.scale_up, system.nic};
  return execute(program_graph(program, topology, prices, {}).graph, topology)
      .makespan.seconds()
      .si();
}

double at_once(const System& system, const std::vector<Leg>& legs, int ranks) {
  const Topology topology = Topology::build(system, ranks);
  TaskGraph graph;
  Task task;
  task.flows = flows_of(topology, legs);
  graph.add(std::move(task));
  return execute(graph, topology).makespan.seconds().si();
}

void add_ring_legs(std::vector<Leg>& legs, const std::vector<int>& ring, double bytes,
                   BytesPerSecond rate) {
  const std::size_t n = ring.size();
  const double wire = 2.0 * static_cast<double>(n - 1) / static_cast<double>(n) * bytes;
  for (std::size_t i = 0; i < n; ++i)
    legs.push_back({Rank{ring[i]}, Rank{ring[(i + 1) % n]}, Bytes{wire}, rate, false, false});
}

// The difference between single rounds and one flow a hop, as a share of the rounds' time.
double ring_difference(const System& system, int ranks, bool second_ring) {
  // Both rings are one program each, so that neither waits for the other's rounds.
  std::vector<Leg> legs;
  add_ring_legs(legs, in_order(ranks), tensor, system.nic);
  CollectiveProgram one;
  add_stepwise_ring(one, in_order(ranks), tensor);
  if (!second_ring) return at_once(system, legs, ranks) / stepwise(system, one) - 1.0;
  add_ring_legs(legs, all_but_one(ranks), 0.6 * tensor, system.nic);
  const Topology topology = Topology::build(system, ranks);
  const MessagePrices prices{Seconds{}, Seconds{}, system.scale_up, system.nic};
  CollectiveProgram other;
  add_stepwise_ring(other, all_but_one(ranks), 0.6 * tensor);
  const ProgramGraph a = program_graph(one, topology, prices, {});
  const ProgramGraph b = program_graph(other, topology, prices, {});
  TaskGraph both;
  for (const ProgramGraph* part : {&a, &b}) {
    const int offset = both.size();
    for (int i = 0; i < part->graph.size(); ++i) both.add(part->graph.task(TaskId{i}));
    for (int i = 0; i < part->graph.size(); ++i)
      part->graph.for_each_successor(TaskId{i}, [&](TaskId next) {
        both.depends(TaskId{offset + next.value}, TaskId{offset + i});
      });
  }
  return at_once(system, legs, ranks) / execute(both, topology).makespan.seconds().si() - 1.0;
}

void expect_close(const char* what, int ranks, double difference) {
  std::printf("%s, %d ranks: %+.3f %%\n", what, ranks, 100 * difference);
  EXPECT_LT(std::abs(difference), 0.015) << what << " " << ranks;
}

TEST(Stepwise, RingAlone) {
  for (int ranks : {2, 4, 8, 16, 64})
    EXPECT_NEAR(ring_difference(single_gpu_nodes(), ranks, false), 0.0, 1e-6) << ranks;
}

TEST(Stepwise, RingConcurrentWithAnotherOnTheSameNics) {
  for (int ranks : {4, 8, 16, 64})
    expect_close("two rings", ranks, ring_difference(single_gpu_nodes(), ranks, true));
}

TEST(Stepwise, RingWithANicAtHalfSpeed) {
  const System slow = with_half_speed_nic(single_gpu_nodes());
  for (int ranks : {4, 8, 16, 64}) {
    expect_close("one NIC at half speed", ranks, ring_difference(slow, ranks, false));
    expect_close("both", ranks, ring_difference(slow, ranks, true));
  }
}

// Rounds of an all-to-all between single GPUs use every port fully: n - 1 times as long as one.
TEST(Stepwise, PairsOneAfterAnother) {
  const System system = single_gpu_nodes();
  for (int ranks : {2, 4, 8, 16}) {
    CollectiveProgram program;
    add_stepwise_pairs(program, ranks, tensor / ranks);
    std::vector<Rank> group;
    for (int i = 0; i < ranks; ++i) group.push_back(Rank{i});
    Plan plan;
    plan.tp = ranks;
    const std::vector<Leg> legs =
        legs_of(Placement{plan, system}, group, Exchange::uniform(ranks, Bytes{tensor / ranks}),
                system.scale_up, system.nic);
    EXPECT_NEAR(at_once(system, legs, ranks) / stepwise(system, program), 1.0, 1e-6) << ranks;
  }
}

// Chunks climb both trees and come down: the edges at once take as long but for filling and
// emptying the pipeline, some 2 log2(n) of the chunks.
TEST(Stepwise, ChunksThroughADoubleTree) {
  const System system = single_gpu_nodes();
  for (int ranks : {2, 4, 8}) {
    constexpr int chunks = 512;
    CollectiveProgram program;
    add_stepwise_trees(program, ranks, tensor, chunks);
    CollectiveCost cost;
    cost.pattern = CollectivePattern::tree;
    cost.network_bytes = Bytes{tree_sends(ranks) / 2.0 * tensor};
    cost.network_rate = system.nic;
    std::vector<Rank> group;
    for (int i = 0; i < ranks; ++i) group.push_back(Rank{i});
    Plan plan;
    plan.tp = ranks;
    expect_close("double tree", ranks,
                 at_once(system, legs_of(Placement{plan, system}, group, cost), ranks) /
                         stepwise(system, program) -
                     1.0);
  }
}

}  // namespace
}  // namespace orrery::stepwise_test
