#include "sim/engine/critical_path.hpp"

#include <algorithm>

namespace orrery {

Seconds least_time(const Task& task) {
  Seconds slowest;
  for (const Flow& flow : task.flows) slowest = std::max(slowest, flow.bytes / flow.rate);
  return task.duration + slowest;
}

CriticalPath critical_path(const TaskGraph& graph) {
  const auto index = [](TaskId id) { return static_cast<std::size_t>(id.value); };
  const auto count = static_cast<std::size_t>(graph.size());
  std::vector<Seconds> ready(count);  // When all before it have finished.
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

std::vector<Seconds> longest_chains(const TaskGraph& graph, const std::vector<TaskId>& first) {
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
