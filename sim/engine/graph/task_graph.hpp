#pragma once

#include <memory>
#include <span>
#include <vector>

#include "sim/engine/graph/task.hpp"

namespace orrery {

/// The tasks of one step and which must wait for which. Task ids count up in the order of add().
class TaskGraph {
 public:
  TaskGraph();
  TaskGraph(TaskGraph&&) noexcept;
  TaskGraph& operator=(TaskGraph&&) noexcept;
  ~TaskGraph();

  TaskId add(Task task);
  void depends(TaskId after, TaskId before);

  int size() const;
  const Task& task(TaskId id) const;
  std::span<const Task> tasks() const;  ///< By their ids.
  int waits_for(TaskId id) const;       ///< How many tasks must finish before it.
  template <class Visit>
  void for_each_successor(TaskId id, const Visit& visit) const {
    for (int after : successors(id)) visit(TaskId{after});
  }
  template <class Visit>
  void for_each_predecessor(TaskId id, const Visit& visit) const {
    for (int before : predecessors(id)) visit(TaskId{before});
  }

  /// All tasks, each after those it waits for. Empty if there is a cycle.
  std::vector<TaskId> in_order() const;

 private:
  std::span<const int> successors(TaskId id) const;
  std::span<const int> predecessors(TaskId id) const;

  struct Graph;
  std::unique_ptr<Graph> graph_;
};

}  // namespace orrery
