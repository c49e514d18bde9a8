#include <gtest/gtest.h>

#include "sim/engine/task_graph.hpp"

namespace orrery::critical_path_test {
namespace {

Task lasting(double seconds) {
  Task task;
  task.duration = Seconds{seconds};
  return task;
}

// a (1) -> b (5) -> d (1)   is longer than   a -> c (2) -> d.
TEST(CriticalPath, IsTheLongestChain) {
  TaskGraph graph;
  const TaskId a = graph.add(lasting(1.0)), b = graph.add(lasting(5.0));
  const TaskId c = graph.add(lasting(2.0)), d = graph.add(lasting(1.0));
  graph.depends(b, a);
  graph.depends(c, a);
  graph.depends(d, b);
  graph.depends(d, c);
  const CriticalPath path = critical_path(graph);
  EXPECT_DOUBLE_EQ(path.length.si(), 7.0);
  EXPECT_EQ(path.tasks, (std::vector<TaskId>{a, b, d}));
}

// Alone on its links a transfer takes its latency, then its slowest flow: 0.5 + max(4 / 2, 9 / 3).
TEST(CriticalPath, ATransferTakesAtLeastItsSlowestFlow) {
  Task task = lasting(0.5);
  task.flows = {{{}, Bytes{4.0}, BytesPerSecond{2.0}}, {{}, Bytes{9.0}, BytesPerSecond{3.0}}};
  EXPECT_DOUBLE_EQ(least_time(task).si(), 3.5);
}

//     a 1 -> b 5 -> d 1
//     e 9 -> c 2 -> d
TEST(CriticalPath, ChainsFromSomeTasks) {
  TaskGraph graph;
  const TaskId a = graph.add(lasting(1.0)), b = graph.add(lasting(5.0));
  const TaskId c = graph.add(lasting(2.0)), d = graph.add(lasting(1.0)),
               e = graph.add(lasting(9.0));
  graph.depends(b, a);
  graph.depends(d, b);
  graph.depends(c, e);
  graph.depends(d, c);
  const auto seconds = [&](const std::vector<TaskId>& first) {
    std::vector<double> list;
    for (Seconds length : longest_paths(graph, first)) list.push_back(length.si());
    return list;
  };
  EXPECT_EQ(seconds({a}), (std::vector<double>{1.0, 6.0, -1.0, 7.0, -1.0}));
  EXPECT_EQ(seconds({c, b}), (std::vector<double>{-1.0, 5.0, 2.0, 6.0, -1.0}));
  EXPECT_EQ(seconds({e, b, d}), (std::vector<double>{-1.0, 5.0, 11.0, 12.0, 9.0}));
  EXPECT_EQ(seconds({}), std::vector<double>(5, -1.0));
}

TEST(CriticalPath, OfNothingIsEmpty) {
  EXPECT_EQ(critical_path(TaskGraph{}).length.si(), 0.0);
  EXPECT_TRUE(critical_path(TaskGraph{}).tasks.empty());
}

TEST(TaskGraph, CountsWhatATaskWaitsFor) {
  TaskGraph graph;
  const TaskId a = graph.add(lasting(1.0)), b = graph.add(lasting(1.0)),
               c = graph.add(lasting(1.0));
  graph.depends(c, a);
  graph.depends(c, b);
  EXPECT_EQ(graph.waits_for(a), 0);
  EXPECT_EQ(graph.waits_for(c), 2);
  std::vector<TaskId> before, after;
  graph.for_each_predecessor(c, [&](TaskId id) { before.push_back(id); });
  graph.for_each_successor(a, [&](TaskId id) { after.push_back(id); });
  EXPECT_EQ(before, (std::vector<TaskId>{a, b}));
  EXPECT_EQ(after, (std::vector<TaskId>{c}));
}

TEST(TaskGraph, ACircleHasNoOrder) {
  TaskGraph graph;
  const TaskId a = graph.add(lasting(1.0)), b = graph.add(lasting(1.0));
  graph.depends(b, a);
  EXPECT_EQ(graph.in_order(), (std::vector<TaskId>{a, b}));
  graph.depends(a, b);
  EXPECT_TRUE(graph.in_order().empty());
}

}  // namespace
}  // namespace orrery::critical_path_test
