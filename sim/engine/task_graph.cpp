#include "sim/engine/task_graph.hpp"

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
  // First how many there are, then where each row ends; filled from the back, so that it begins
  // there in the end.
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

}  // namespace orrery
