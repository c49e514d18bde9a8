// Steps during a checkpoint's write: what it takes of them, in closed forms where they exist, and
// properties where they do not.

#include <gtest/gtest.h>

#include <cmath>

#include "sim/engine/max_min_network.hpp"
#include "sim/engine/simulation.hpp"
#include "sim/training/checkpoint_write.hpp"
#include "tests/support/fabrics.hpp"
#include "tests/support/placements.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::steps_during_write_test {
namespace {

constexpr double nic = 1e9;
constexpr double unlimited = 1e15;

struct Degrees {
  int tp = 1, pp = 1, gpus = 8, zero = 1, cp = 1;
};

Scenario small(const Degrees& of, const System& system, std::int64_t batch_of_replica = 4) {
  const int replicas = of.gpus / (of.tp * of.pp * of.cp);
  PlanRequest request = plan_request(of.tp, of.pp, 1, replicas * batch_of_replica, 512, "");
  request.zero = of.zero;
  request.cp = of.cp;
  request.dp_overlap = false;
  return scenario_of(small_gpt(4, 512, 8, 4096), system, request, of.gpus);
}

CheckpointWrite bytes_of_each(double bytes, const Scenario& scenario, double store = unlimited) {
  CheckpointWrite write;
  write.of_rank.assign(static_cast<std::size_t>(scenario.plan.pp), Bytes{bytes});
  write.store = BytesPerSecond{store};
  write.off_rank = BytesPerSecond{unlimited};
  return write;
}

StepsDuringWrite during(const Scenario& scenario, const CheckpointWrite& write,
                        Detail detail = {}) {
  EstimateContext context{scenario.system};
  return steps_during(scenario, context, write, detail);
}

void expect_same(const StepsDuringWrite& a, const StepsDuringWrite& b, double share) {
  EXPECT_NEAR(a.step / b.step, 1.0, share);
  EXPECT_NEAR(a.write / b.write, 1.0, share);
  EXPECT_NEAR(a.longer.si(), b.longer.si(), share * b.write.si());
  EXPECT_LE(std::abs(a.steps - b.steps), 1);
}

// The step's own traffic on the NIC by which rank 0 sends: bytes, and their time without other
// traffic. All flows of these steps follow one another.
struct OnNic {
  double bytes = 0.0, time = 0.0;
};
OnNic traffic_on_nic(const Scenario& scenario) {
  const Estimate whole = estimate(scenario);
  const LinkId own = *whole.topology.nic_of(Rank{0}, true);
  OnNic all;
  for (const Task& task : whole.step.graph.tasks())
    for (const Flow& flow : task.flows)
      for (const LinkUse& use : flow.route)
        if (use.link == own) {
          all.bytes += flow.bytes.si();
          all.time += flow.bytes.si() / std::min(flow.rate.si(), nic / use.times);
        }
  return all;
}

// A single node has no other traffic on its NICs: the write's slowest part decides, no step slows.
TEST(StepsDuringWrite, WhereNothingIsSharedIsTheSlowestWay) {
  const Scenario scenario = small({4, 1, 4}, nodes_of(4, 4));
  const double step = estimate(scenario).result.step_time.si();
  CheckpointWrite write = bytes_of_each(3.3 * step * nic, scenario);
  const auto expect_write = [&](double seconds) {
    const StepsDuringWrite all = during(scenario, write);
    EXPECT_NEAR(all.step.si(), step, 1e-12);
    EXPECT_NEAR(all.write.si(), seconds, 1e-9 * seconds);
    EXPECT_EQ(all.longer.si(), 0.0);
    EXPECT_EQ(all.steps, static_cast<std::int64_t>(std::ceil(seconds / step)));
  };
  expect_write(3.3 * step);  // The NICs of 1 GB/s.
  write.store = BytesPerSecond{1e9};
  expect_write(4 * 3.3 * step);  // Four ranks, and a port of 1 GB/s.
  write.store = BytesPerSecond{unlimited};
  write.off_rank = BytesPerSecond{0.25e9};
  expect_write(4 * 3.3 * step);  // The way off a GPU.
}

// Without bytes there is no write, and the step is the plain one.
TEST(StepsDuringWrite, WithoutBytesIsThePlainStep) {
  const Scenario scenario = small({4, 1, 8}, nodes_of(4, 4));
  const StepsDuringWrite all = during(scenario, bytes_of_each(0.0, scenario));
  EXPECT_EQ(all.step, estimate(scenario).result.step_time);
  EXPECT_EQ(all.write.si(), 0.0);
  EXPECT_EQ(all.steps, 0);
  EXPECT_EQ(all.longer.si(), 0.0);
}

// Two nodes sum up gradients over NICs of B = 1 GB/s, X bytes each at rate g alone. With writers
// that a store limits to w < B / 2 each, they get min(g, B - w): a step takes longer by X / min(g,
// B - w) - X / g, whatever else it does, and writers are never slowed.
TEST(StepsDuringWrite, ASlowStoreTakesItsRateFromTheGradients) {
  const Scenario scenario = small({4, 1, 8}, nodes_of(4, 4));
  const OnNic own = traffic_on_nic(scenario);
  ASSERT_GT(own.bytes, 0.0);
  const double gradients_rate = own.bytes / own.time;
  for (const double w : {0.1 * nic, 0.3 * nic, 0.49 * nic}) {
    const double step = estimate(scenario).result.step_time.si();
    const double longer = std::max(0.0, own.bytes / std::min(gradients_rate, nic - w) - own.time);
    ASSERT_GT(longer, 1e-3 * step);
    // Ten and a half of the longer steps; the half has passes alone, if they are the longer part.
    const double lasts = 10.0 * (step + longer) + 0.2 * step;
    const StepsDuringWrite all = during(scenario, bytes_of_each(w * lasts, scenario, 8.0 * w));
    EXPECT_NEAR(all.write.si(), lasts, 1e-6 * lasts);
    EXPECT_NEAR(all.throughout.si(), step + longer, 1e-6 * step);
    EXPECT_EQ(all.steps, 11);
    EXPECT_GE(all.longer.si(), 10.0 * longer * (1.0 - 1e-6));
    EXPECT_LE(all.longer.si(), 11.0 * longer * (1.0 + 1e-6));
  }
}

// Writers that nothing holds back take a NIC for themselves, and half of it where gradients want
// as much: a step has X bytes of each at B / 2, and the writers B for the rest of it. In a step
// they move B (S - X / g) + X, and S grows by 2 X / B - X / g.
TEST(StepsDuringWrite, AFastStoreTakesHalfOfANic) {
  const Scenario scenario = small({4, 1, 8}, nodes_of(4, 4));
  const OnNic own = traffic_on_nic(scenario);
  const double step = estimate(scenario).result.step_time.si();
  const double longer = 2.0 * own.bytes / nic - own.time;
  const double moved = nic * (step - own.time) + own.bytes;
  ASSERT_GT(own.bytes / own.time, nic / 2.0);
  for (const int steps : {1, 2, 7}) {
    const StepsDuringWrite all = during(scenario, bytes_of_each(steps * moved, scenario));
    EXPECT_EQ(all.steps, steps);
    EXPECT_NEAR(all.write.si(), steps * (step + longer), 1e-6 * steps * step);
    EXPECT_NEAR(all.longer.si(), steps * longer, 1e-6 * steps * step);
  }
}

// The step again, after `before` if that is a task; the task at which it ends.
TaskId add_step(const Estimate& one, TaskId before, TaskGraph& graph) {
  const TaskGraph& own = one.step.graph;
  const int offset = graph.size();
  for (const Task& task : own.tasks()) graph.add(task);
  const TaskId end = graph.add(Task{});
  for (int i = 0; i < own.size(); ++i) {
    const TaskId id{offset + i};
    if (own.waits_for(TaskId{i}) == 0 && before.value >= 0) graph.depends(id, before);
    own.for_each_successor(TaskId{i},
                           [&](TaskId next) { graph.depends(TaskId{offset + next.value}, id); });
    graph.depends(end, id);
  }
  return end;
}

// Consecutive steps in one graph, with a concurrent flow for each writer, take the time that is
// simulated step by step: what is on the links at a step's end is what is left of the writers.
TEST(StepsDuringWrite, IsOneGraphOfManySteps) {
  for (const Degrees degrees : {Degrees{4, 1, 8}, Degrees{2, 2, 16}, Degrees{4, 4, 32}})
    for (const double store : {0.4e9, 3e9, unlimited}) {
      const Scenario scenario = small(degrees, nodes_of(4, 4));
      Estimate one = estimate(scenario);
      // Writers of different stages end at different times.
      CheckpointWrite write = bytes_of_each(0.06e9, scenario, store);
      for (std::size_t stage = 0; stage < write.of_rank.size(); ++stage)
        write.of_rank[stage] = Bytes{(1.0 + 0.25 * static_cast<double>(stage)) * 0.06e9};
      const StepsDuringWrite all = during(scenario, write);
      ASSERT_GE(all.steps, 1);

      TaskGraph graph;
      std::vector<TaskId> writes;
      for (const Writer& writer : writers_of(write, one.step.classes, one.topology)) {
        Task task;
        task.flows = std::vector<Flow>{writer.flow};
        writes.push_back(graph.add(std::move(task)));
      }
      TaskId end{-1};
      for (std::int64_t step = 0; step < all.steps; ++step) end = add_step(one, end, graph);
      const Timeline timeline = execute(graph, one.topology);
      Seconds written;
      for (const TaskId id : writes) written = std::max(written, timeline.of(id).finish.seconds());
      EXPECT_NEAR(all.write / written, 1.0, 1e-6) << degrees.pp << " " << store;
      const Seconds longer =
          timeline.of(end).finish.seconds() - static_cast<double>(all.steps) * all.step;
      EXPECT_NEAR(all.longer.si(), longer.si(), 1e-6 * written.si()) << degrees.pp << " " << store;
    }
}

// Folded as with every rank, also where NICs are shared, where collectives cross them inside of
// passes, on fabrics with switches, and where one replica saves for all.
TEST(StepsDuringWrite, FoldsExactly) {
  const Degrees all[] = {{4, 1, 16, 1}, {4, 1, 16, 0}, {2, 2, 16, 1},    {2, 2, 16, 0},
                         {1, 4, 16, 1}, {8, 1, 16, 1}, {2, 1, 16, 1, 4}, {4, 4, 32, 0}};
  for (const System& system : {nodes_of(4, 4), nodes_of(4, 2), nodes_of(4, 1)})
    for (const Degrees& degrees : all)
      for (const double store : {0.5e9, unlimited}) {
        SCOPED_TRACE(std::to_string(system.nics_per_node) + " NICs, tp " +
                     std::to_string(degrees.tp) + " pp " + std::to_string(degrees.pp) + " zero " +
                     std::to_string(degrees.zero) + " store " + std::to_string(store));
        const Scenario scenario = small(degrees, system);
        CheckpointWrite write = bytes_of_each(0.05e9, scenario, store);
        write.every_replica = degrees.zero > 0;
        Detail unfolded;
        unfolded.unfolded = true;
        expect_same(during(scenario, write), during(scenario, write, unfolded), 1e-6);
        if (system.nics_per_node < 4) continue;
        write.store.reset();  // To memory of other nodes.
        expect_same(during(scenario, write), during(scenario, write, unfolded), 1e-6);
      }
}

TEST(StepsDuringWrite, FoldsOnFabrics) {
  for (const System& system : {leaf_spine(2, 2, 2e9), rail_optimized(2, 2, 1e9)})
    for (const Degrees& degrees : {Degrees{4, 1, 16}, Degrees{2, 2, 16}, Degrees{4, 4, 32}}) {
      const Scenario scenario = small(degrees, system);
      const CheckpointWrite write = bytes_of_each(0.05e9, scenario, 4e9);
      Detail unfolded;
      unfolded.unfolded = true;
      expect_same(during(scenario, write), during(scenario, write, unfolded), 1e-6);
    }
}

TEST(StepsDuringWrite, BothEnginesAgree) {
  for (const Degrees& degrees : {Degrees{4, 1, 8}, Degrees{2, 2, 16}, Degrees{2, 1, 16, 1, 4}})
    for (const double store : {0.5e9, unlimited}) {
      const Scenario scenario = small(degrees, nodes_of(4, 4));
      const CheckpointWrite write = bytes_of_each(0.05e9, scenario, store);
      const StepsDuringWrite own = during(scenario, write);
      const SimulatorChoice simgrid{Simulator::simgrid};
      expect_same(own, during(scenario, write), 1e-4);
    }
}

// A faster store is never later done; and what steps lose to a write is at most the time that its
// bytes take on the NICs, as for that time they have lost them.
TEST(StepsDuringWrite, AFasterStoreIsNeverLaterDone) {
  for (const Degrees& degrees : {Degrees{4, 1, 8}, Degrees{2, 2, 16}, Degrees{4, 4, 32}}) {
    const Scenario scenario = small(degrees, nodes_of(4, 4));
    Seconds before{1e300};
    for (double store = 0.1e9; store < 1e12; store *= 1.7) {
      const double bytes = 0.05e9;
      const StepsDuringWrite all = during(scenario, bytes_of_each(bytes, scenario, store));
      EXPECT_LE(all.write, before * (1.0 + 1e-9));
      EXPECT_LE(all.longer.si(), bytes / nic * 4.0);
      const double least = std::max(bytes / nic, bytes * degrees.gpus / store);
      EXPECT_GE(all.write.si(), least * (1.0 - 1e-9));
      before = all.write;
    }
  }
}

// Three flows on a link of 10, one that may have 2 alone and one that crosses it twice: 2, then
// (10 - 2) / 3 for the others, of which the one crosses twice.
TEST(SharedRates, RiseTogether) {
  Topology topology = Topology::build(nodes_of(4, 4), 8);
  const LinkId port = topology.add_port(BytesPerSecond{10.0});
  const Flow slow{{{port, 1}}, Bytes{1.0}, BytesPerSecond{2.0}};
  const Flow once{{{port, 1}}, Bytes{1.0}, BytesPerSecond{100.0}};
  const Flow twice{{{port, 2}}, Bytes{1.0}, BytesPerSecond{100.0}};
  const std::vector<double> rates = max_min_rates({&slow, &once, &twice}, topology);
  EXPECT_DOUBLE_EQ(rates[0], 2.0);
  EXPECT_DOUBLE_EQ(rates[1], 8.0 / 3.0);
  EXPECT_DOUBLE_EQ(rates[2], 8.0 / 3.0);
  EXPECT_EQ(topology.name(port), "port0");
}

}  // namespace
}  // namespace orrery::steps_during_write_test
