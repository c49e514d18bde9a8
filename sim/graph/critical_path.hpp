#pragma once

#include <vector>

#include "sim/graph/task_graph.hpp"

namespace orrery {

struct CriticalPath {
  Seconds length;
  std::vector<TaskId> tasks;  ///< First to last.
};

/// The longest chain of tasks that wait for each other, each taking its least time: no sharing of
/// links can make a step shorter.
CriticalPath critical_path(const TaskGraph& graph);

}  // namespace orrery
