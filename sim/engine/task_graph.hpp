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

/// A link of a flow's route, and the number of equal flows that cross it at once. Max-min sharing
/// then counts all flows of the whole cluster.
struct LinkUse {
  LinkId link;
  int times = 1;
  bool operator==(const LinkUse&) const = default;
};

using FlowRoute = std::vector<LinkUse>;

/// Work on one stream of one GPU runs in order; streams run concurrently.
enum class Stream : std::uint8_t { compute, tensor, pipeline, data };

/// Bytes that move over all links of a route at once, at `rate` without competing flows.
struct Flow {
  std::vector<LinkUse> route;
  Bytes bytes;
  BytesPerSecond rate;
};

/// Flows that start together. Copies share the flows, as do the tasks of all micro-batches.
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
  /// Both have the same origin, and are therefore equal.
  bool same(const Flows& other) const { return flows_ == other.flows_; }

 private:
  std::shared_ptr<const std::vector<Flow>> flows_;
};

class FusedTask;

/// A vertex of the task graph: lasts `duration`, then its flows move at once. It starts when all
/// its predecessors have finished. It holds only what the engine needs, in less than a cache line,
/// because the engine visits tasks in no order.
struct Task {
  Seconds duration;
  Flows flows;
  std::shared_ptr<const FusedTask> fused = {};  ///< Replaces `duration` and `flows`.
  std::int32_t owner = 0;  ///< Index of the actor that runs it, such as a rank.
  std::int32_t note = -1;  ///< Index of the owner's data about it.
  Stream stream = Stream::compute;
};
static_assert(sizeof(Task) <= 64);

/// The shortest time that `task` can take, with its links to itself.
Seconds least_time(const Task& task);

/// The tasks of one step and their dependences. Task ids count up in the order of add().
class TaskGraph {
 public:
  /// Reserves space for a number of tasks, and about as many edges.
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
  std::span<const Task> tasks() const { return tasks_; }  ///< Indexed by id.
  /// The number of tasks that must finish before it.
  int waits_for(TaskId id) const { return waits_[index(id.value)]; }
  std::span<const int> waits() const { return waits_; }  ///< Indexed by task.

  /// Visits successors in the order of depends().
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
  // Adjacency in two arrays; a list for each task would take two allocations a task.
  struct Rows {
    std::vector<int> begin;  // Indexed by task; the last entry is the end.
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
  std::vector<Edge> edges_;  // Sorted by the order of depends().
  std::vector<int> waits_;
  mutable Rows successors_, predecessors_;  // Computed when first used.
};

struct CriticalPath {
  Seconds length;
  std::vector<TaskId> tasks;  ///< First to last.
};

/// The longest path of tasks that wait for each other, each taking its least time: no sharing of
/// links can make a step shorter.
CriticalPath critical_path(const TaskGraph& graph);

/// Length of the longest such path that begins with one of `first` and ends with each task; below
/// zero if there is none. It is a lower bound for the finish after the first of them has started.
std::vector<Seconds> longest_paths(const TaskGraph& graph, const std::vector<TaskId>& first);

}  // namespace orrery
