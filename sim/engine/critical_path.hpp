#pragma once

#include <vector>

#include "sim/engine/task_graph.hpp"

namespace orrery {

struct CriticalPath {
  Seconds length;
  std::vector<TaskId> tasks;  ///< First to last.
};

/// The longest chain of tasks that wait for each other, each taking its least time: no sharing of
/// links can make a step shorter.
CriticalPath critical_path(const TaskGraph& graph);

/// By task: the longest such chain that begins with one of `first` and ends with it; below zero
/// where there is none. So long after the first of them has started it ends at the earliest.
std::vector<Seconds> longest_chains(const TaskGraph& graph, const std::vector<TaskId>& first);

}  // namespace orrery
