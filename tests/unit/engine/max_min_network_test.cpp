#include "sim/engine/max_min_network.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/engine/fused_task.hpp"
#include "sim/engine/simulation.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::max_min_network_test {
namespace {

Task sends(double after, Flows flows) {
  Task task;
  task.duration = Seconds{after};
  task.flows = std::move(flows);
  return task;
}

Task join() { return {}; }

Task computes(Seconds duration) {
  Task task;
  task.duration = duration;
  return task;
}

Task fused_task_of(std::shared_ptr<const FusedTask> fused) {
  Task task;
  task.fused = std::move(fused);
  return task;
}

// Three links of two-gpus, all of 1 GB/s: the ways out of rank 0 to its neighbour and to the
// network, and the way into rank 2.
class ThreeLinks : public ::testing::Test {
 protected:
  ThreeLinks() {
    for (auto [from, to] : {std::pair{0, 1}, std::pair{0, 2}})
      for (LinkId id : topology_.route(Rank{from}, Rank{to})) {
        const bool known = std::find(links_.begin(), links_.end(), id) != links_.end();
        if (!known && links_.size() < 3) links_.push_back(id);
      }
  }

  // `ways`: of each link how often, 0 to 2, in base 3.
  Flow flow(int ways, double bytes, double rate) const {
    Flow flow;
    for (LinkId link : links_) {
      if (ways % 3 > 0) flow.route.push_back({link, ways % 3});
      ways /= 3;
    }
    flow.bytes = Bytes{bytes};
    flow.rate = BytesPerSecond{rate};
    return flow;
  }

  void expect_as_on_simgrid(const TaskGraph& graph, const std::string& what) const {
    const Timeline here = execute(graph, topology_);
    const Timeline there = execute(graph, topology_, Simulator::simgrid);
    for (std::size_t i = 0; i < here.spans.size(); ++i) {
      EXPECT_NEAR(here.spans[i].start.seconds().si(), there.spans[i].start.seconds().si(), 1e-7)
          << what << " " << i;
      EXPECT_NEAR(here.spans[i].finish.seconds().si(), there.spans[i].finish.seconds().si(), 1e-7)
          << what << " " << i;
    }
  }

  Topology topology_ = Topology::build(read_system("two-gpus", test_place), 8);
  std::vector<LinkId> links_;
};

// Every way over three links, each crossed not at all, once or twice, of each of three flows; the
// second comes while the first is under way, and the third has a cap and follows the second.
TEST_F(ThreeLinks, SharesAsSimGridDoes) {
  ASSERT_EQ(links_.size(), 3u);
  for (int a = 1; a < 27; ++a)
    for (int b = 1; b < 27; ++b)
      for (int c = 1; c < 27; c += 2) {
        TaskGraph graph;
        graph.add(sends(0.0, {flow(a, 1e9, 0.9e9)}));
        const TaskId second = graph.add(sends(0.25, {flow(b, 0.3e9, 1e12)}));
        graph.add(sends(0.35, {flow(c, 0.5e9, 0.4e9), flow(a, 0.1e9, 1e12)}));
        graph.depends(graph.add(sends(0.0, {flow(c, 0.2e9, 0.7e9)})), second);
        expect_as_on_simgrid(graph,
                             std::to_string(a) + " " + std::to_string(b) + " " + std::to_string(c));
      }
}

// 1, 2, ... 24 flows on one link.
TEST_F(ThreeLinks, ManyFlowsShareOneLink) {
  for (int flows = 1; flows <= 24; ++flows) {
    TaskGraph graph;
    for (int i = 0; i < flows; ++i) graph.add(sends(0.05 * i, {flow(1, 1e9, 0.3e9)}));
    expect_as_on_simgrid(graph, std::to_string(flows) + " flows");
    EXPECT_NEAR(execute(graph, topology_).makespan.seconds().si(),
                flows <= 3 ? 0.05 * (flows - 1) + 1.0 / 0.3 : flows, flows <= 3 ? 1e-9 : 0.4);
  }
}

// Twenty flows on one link and a few on the two others, until one comes that connects them.
TEST_F(ThreeLinks, AFlowConnectsOthers) {
  constexpr int first = 1, second = 3, third = 9;  // Ways over one link, in base 3.
  for (int few = 1; few <= 6; ++few)
    for (int route : {first + second, first + third, first + second + third})
      for (double when : {0.0, 0.15, 0.6}) {
        TaskGraph graph;
        for (int i = 0; i < 20; ++i) graph.add(sends(0.0, {flow(first, 0.1e9, 0.3e9)}));
        for (int i = 0; i < few; ++i)
          graph.add(sends(0.1 * i, {flow(i % 2 ? second + third : second, 0.4e9, 0.6e9)}));
        graph.add(sends(when, {flow(route, 0.2e9, 1e12)}));
        graph.add(sends(when + 0.05, {flow(third, 0.3e9, 0.7e9)}));
        graph.add(sends(when + 0.1, {flow(second + third, 0.1e9, 1e12)}));
        expect_as_on_simgrid(
            graph, std::to_string(few) + " " + std::to_string(route) + " " + std::to_string(when));
      }
}

// A fused task against the same expanded, concurrent with every flow that may come across it.
TEST_F(ThreeLinks, AFusedTaskTakesTheTimeOfItsParts) {
  const auto phase_of = [&](double concurrent, double before, std::vector<Flow> flows) {
    return FusedTask::Phase{Ticks::nearest(Seconds{concurrent}), Ticks::nearest(Seconds{before}),
                            std::move(flows)};
  };
  const std::vector<FusedTask::Phase> phases{
      phase_of(0.0, 0.125, {flow(3, 0.25e9, 0.5e9)}),
      phase_of(0.5, 0.125, {flow(9, 0.125e9, 1e12)}), phase_of(0.0, 0.25, {}),
      phase_of(0.0, 0.0, {flow(3, 0.25e9, 1e12), flow(9, 1e8, 1e9)})};
  const auto fused = std::make_shared<const FusedTask>(phases, topology_);
  // 0.125 + 0.5, 0.5, 0.25, 0.25
  EXPECT_NEAR(fused->length().seconds().si(), 1.625, 1e-12);
  EXPECT_EQ(fused->phase_at(Ticks::nearest(Seconds{0.7})), 1u);

  for (int route = 0; route < 27; ++route)
    for (int when = 0; when <= 40; ++when)
      for (double bytes : {1e6, 0.2e9, 0.9e9}) {
        double ends[2];
        for (bool expanded : {false, true}) {
          TaskGraph graph;
          const TaskId gate = graph.add(join());
          TaskId last = gate;
          if (expanded) {
            for (const FusedTask::Phase& phase : phases) {
              const TaskId sent = graph.add(sends(phase.before.seconds().si(), phase.flows));
              const TaskId computed = graph.add(computes(phase.concurrent.seconds()));
              const TaskId both = graph.add(join());
              for (TaskId half : {sent, computed}) {
                graph.depends(half, last);
                graph.depends(both, half);
              }
              last = both;
            }
          } else {
            last = graph.add(fused_task_of(fused));
            graph.depends(last, gate);
          }
          if (route > 0)
            for (double later : {0.0, 0.3})
              graph.add(sends(0.05 * when + later, {flow(route, bytes, 0.8e9)}));
          ends[expanded] = execute(graph, topology_).of(last).finish.seconds().si();
        }
        EXPECT_NEAR(ends[0], ends[1], 1e-11) << route << " at " << when << " " << bytes;
      }
}

}  // namespace
}  // namespace orrery::max_min_network_test
