#pragma once

#include <vector>

#include "sim/engine/graph/task_graph.hpp"

namespace orrery {

struct CriticalPath {
  Seconds length;
  std::vector<TaskId> tasks;  ///< First to last.
  std::vector<Seconds> ends;  ///< Of every task, by its id, where each takes its least time.
};

/// The longest chain of tasks that wait for each other, each taking its least time: no sharing of
/// links can make a step shorter.
CriticalPath critical_path(const TaskGraph& graph);

}  // namespace orrery
