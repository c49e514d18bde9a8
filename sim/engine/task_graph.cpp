#include "sim/engine/task_graph.hpp"

#include <algorithm>

namespace orrery {

void TaskGraph::reserve(std::size_t tasks) {
  tasks_.reserve(tasks);
  waits_.reserve(tasks);
  edges_.reserve(tasks + tasks / 4);
}

TaskGraph::Rows TaskGraph::rows(int Edge::*from, int Edge::*to) const {
  Rows rows;
  rows.begin.resize(tasks_.size() + 1);
  rows.of.resize(edges_.size());
  // Counts the rows and computes their ends; filled from the back, so that ends become begins.
  for (const Edge& edge : edges_) ++rows.begin[index(edge.*from)];
  int end = 0;
  for (int& place : rows.begin) place = end += place;
  for (auto edge = edges_.rbegin(); edge != edges_.rend(); ++edge)
    rows.of[index(--rows.begin[index((*edge).*from)])] = (*edge).*to;
  return rows;
}

std::vector<TaskId> TaskGraph::in_order() const {
  std::vector<int> waits = waits_;
  std::vector<TaskId> order;
  order.reserve(tasks_.size());
  for (int task = 0; task < size(); ++task)
    if (waits[index(task)] == 0) order.push_back(TaskId{task});
  for (std::size_t next = 0; next < order.size(); ++next)
    for_each_successor(order[next], [&](TaskId after) {
      if (--waits[index(after.value)] == 0) order.push_back(after);
    });
  if (order.size() < tasks_.size()) return {};
  return order;
}

Seconds least_time(const Task& task) {
  Seconds slowest;
  for (const Flow& flow : task.flows) slowest = std::max(slowest, flow.bytes / flow.rate);
  return task.duration + slowest;
}

CriticalPath critical_path(const TaskGraph& graph) {
  const auto index = [](TaskId id) { return static_cast<std::size_t>(id.value); };
  const auto count = static_cast<std::size_t>(graph.size());
  std::vector<Seconds> ready(count);  // The finish of the last predecessor.
  std::vector<int> through(count, -1);
  Seconds longest;
  int last = -1;
  for (TaskId id : graph.in_order()) {
    const Seconds finish = ready[index(id)] + least_time(graph.task(id));
    graph.for_each_successor(id, [&](TaskId after) {
      if (finish > ready[index(after)])
        ready[index(after)] = finish, through[index(after)] = id.value;
    });
    if (last < 0 || finish > longest) longest = finish, last = id.value;
  }
  CriticalPath path;
  if (last < 0) return path;
  path.length = longest;
  for (int id = last; id >= 0; id = through[static_cast<std::size_t>(id)])
    path.tasks.push_back(TaskId{id});
  std::reverse(path.tasks.begin(), path.tasks.end());
  return path;
}

std::vector<Seconds> longest_paths(const TaskGraph& graph, const std::vector<TaskId>& first) {
  const auto index = [](TaskId id) { return static_cast<std::size_t>(id.value); };
  std::vector<Seconds> length(static_cast<std::size_t>(graph.size()), Seconds{-1.0});
  for (TaskId id : first) length[index(id)] = {};
  for (TaskId id : graph.in_order()) {
    Seconds& own = length[index(id)];
    graph.for_each_predecessor(id,
                               [&](TaskId before) { own = std::max(own, length[index(before)]); });
    if (own >= Seconds{}) own += least_time(graph.task(id));
  }
  return length;
}

}  // namespace orrery
