#include "sim/engine/graph/critical_path.hpp"

#include <algorithm>

namespace orrery {

Seconds least_time(const Task& task) {
  Seconds slowest;
  for (const Flow& flow : task.flows) slowest = std::max(slowest, flow.bytes / flow.rate);
  return task.duration + slowest;
}

CriticalPath critical_path(const TaskGraph& graph) {
  const auto count = static_cast<std::size_t>(graph.size());
  std::vector<Seconds> finish(count);
  std::vector<int> through(count, -1);
  int last = -1;
  for (TaskId id : graph.in_order()) {
    const auto index = static_cast<std::size_t>(id.value);
    Seconds start;
    graph.for_each_predecessor(id, [&](TaskId before) {
      const Seconds ready = finish[static_cast<std::size_t>(before.value)];
      if (ready > start) start = ready, through[index] = before.value;
    });
    finish[index] = start + least_time(graph.task(id));
    if (last < 0 || finish[index] > finish[static_cast<std::size_t>(last)]) last = id.value;
  }
  CriticalPath path;
  if (last < 0) return path;
  path.length = finish[static_cast<std::size_t>(last)];
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
