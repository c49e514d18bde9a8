#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "sim/core/units.hpp"

namespace orrery {

/// A link of a flow's way, and how many flows of the same kind cross it at once. Max-min sharing
/// then sees as many as there are in the whole cluster.
struct LinkUse {
  LinkId link;
  int times = 1;
  bool operator==(const LinkUse&) const = default;
};

using Way = std::vector<LinkUse>;

/// Work on one stream of one GPU runs in order; streams run beside each other.
enum class Stream : std::uint8_t { compute, tensor, pipeline, data };

/// Bytes that move over all links of a way at once, at `rate` if nobody else does.
struct Flow {
  std::vector<LinkUse> way;
  Bytes bytes;
  BytesPerSecond rate;
};

/// Flows that start together. Copies are the same flows: the tasks of all micro-batches share them.
class Flows {
 public:
  Flows() = default;
  Flows(std::vector<Flow> flows) {
    if (!flows.empty()) flows_ = std::make_shared<const std::vector<Flow>>(std::move(flows));
  }
  Flows(std::initializer_list<Flow> flows) : Flows{std::vector<Flow>(flows)} {}

  bool empty() const { return !flows_; }
  std::size_t size() const { return flows_ ? flows_->size() : 0; }
  const Flow* begin() const { return flows_ ? flows_->data() : nullptr; }
  const Flow* end() const { return begin() + size(); }
  const Flow& operator[](std::size_t i) const { return (*flows_)[i]; }
  const Flow& front() const { return flows_->front(); }
  /// Of the same origin, and therefore equal.
  bool same(const Flows& other) const { return flows_ == other.flows_; }

 private:
  std::shared_ptr<const std::vector<Flow>> flows_;
};

class Chain;

/// A vertex of the task graph: lasts `duration`, then moves its flows, at once. It starts when all
/// tasks before it have finished. It holds what the engine asks for, in less than a cache line,
/// because the engine comes by in no order.
struct Task {
  Seconds duration;
  Flows flows;
  std::shared_ptr<const Chain> chain = {};  ///< In place of `duration` and `flows`.
  std::int32_t owner = 0;                   ///< Who does it.
  std::int32_t note = -1;                   ///< Its owner's business: where more about it stands.
  Stream stream = Stream::compute;
};
static_assert(sizeof(Task) <= 64);

/// The shortest time that `task` can take: alone on its links.
Seconds least_time(const Task& task);

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
