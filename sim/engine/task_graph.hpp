#pragma once

#include <cassert>
#include <cstddef>
#include <span>
#include <vector>

#include "sim/engine/task.hpp"

namespace orrery {

/// The tasks of one step and which must wait for which. Task ids count up in the order of add().
class TaskGraph {
 public:
  /// So many tasks are expected, and about as many waits.
  void reserve(std::size_t tasks);
  TaskId add(Task&& task) {
    change();
    tasks_.push_back(std::move(task));
    waits_.push_back(0);
    return TaskId{size() - 1};
  }
  TaskId add(const Task& task) { return add(Task{task}); }
  void depends(TaskId after, TaskId before) {
    assert(after != before);
    assert(after.value < size() && before.value < size());
    change();
    edges_.push_back({before.value, after.value});
    ++waits_[index(after.value)];
  }

  int size() const { return static_cast<int>(tasks_.size()); }
  const Task& task(TaskId id) const { return tasks_[index(id.value)]; }
  std::span<const Task> tasks() const { return tasks_; }  ///< By their ids.
  /// How many tasks must finish before it.
  int waits_for(TaskId id) const { return waits_[index(id.value)]; }
  std::span<const int> waits() const { return waits_; }  ///< By task.

  /// In the order of depends().
  template <class Visit>
  void for_each_successor(TaskId id, const Visit& visit) const {
    for (int after : row(successors(), id)) visit(TaskId{after});
  }
  template <class Visit>
  void for_each_predecessor(TaskId id, const Visit& visit) const {
    for (int before : row(predecessors(), id)) visit(TaskId{before});
  }

  /// All tasks, each after those it waits for. Empty if there is a cycle.
  std::vector<TaskId> in_order() const;

 private:
  struct Edge {
    int before, after;
  };
  // Rows of neighbours: two arrays, where a list a task would be two allocations a task.
  struct Rows {
    std::vector<int> begin;  // By task, and the end of the last one.
    std::vector<int> of;
  };

  static std::size_t index(int task) { return static_cast<std::size_t>(task); }
  static std::span<const int> row(const Rows& rows, TaskId id) {
    const int begin = rows.begin[index(id.value)], end = rows.begin[index(id.value) + 1];
    return {rows.of.data() + begin, rows.of.data() + end};
  }
  void change() {
    if (successors_.begin.empty() && predecessors_.begin.empty()) return;
    successors_ = {};
    predecessors_ = {};
  }
  const Rows& successors() const {
    if (successors_.begin.empty()) successors_ = rows(&Edge::before, &Edge::after);
    return successors_;
  }
  const Rows& predecessors() const {
    if (predecessors_.begin.empty()) predecessors_ = rows(&Edge::after, &Edge::before);
    return predecessors_;
  }
  Rows rows(int Edge::*from, int Edge::*to) const;

  std::vector<Task> tasks_;
  std::vector<Edge> edges_;  // In the order of depends().
  std::vector<int> waits_;
  mutable Rows successors_, predecessors_;  // Made when first asked for.
};

}  // namespace orrery
