#include "sim/engine/graph/task_graph.hpp"

#include <algorithm>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/topological_sort.hpp>
#include <cassert>
#include <iterator>
#include <optional>
#include <utility>

namespace orrery {
namespace {

// Rows of successors: two arrays, where a list a vertex would be two allocations a task.
using Rows = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property,
                                                boost::no_property, boost::no_property, int, int>;
using Edges = std::vector<std::pair<int, int>>;

Rows rows_of(const Edges& edges, std::size_t vertices) {
  return {boost::edges_are_unsorted_multi_pass, edges.begin(), edges.end(),
          static_cast<int>(vertices)};
}

std::span<const int> row_of(const Rows& rows, int vertex) {
  const auto [begin, end] = boost::adjacent_vertices(vertex, rows);
  return {begin, end};
}

TaskId task_id(int vertex) { return TaskId{vertex}; }

}  // namespace

struct TaskGraph::Graph {
  std::vector<Task> tasks;
  Edges edges;  // Before, after; in the order of depends().
  std::vector<int> waits;
  // Made when first asked for.
  std::optional<Rows> successors;
  std::optional<Rows> predecessors;

  void change() {
    if (successors) successors.reset();
    if (predecessors) predecessors.reset();
  }
  const Rows& forward() {
    if (!successors) successors.emplace(rows_of(edges, tasks.size()));
    return *successors;
  }
  const Rows& backward() {
    if (!predecessors) {
      Edges reversed;
      reversed.reserve(edges.size());
      for (const auto& [before, after] : edges) reversed.emplace_back(after, before);
      predecessors.emplace(rows_of(reversed, tasks.size()));
    }
    return *predecessors;
  }
};

TaskGraph::TaskGraph() : graph_{std::make_unique<Graph>()} {}
TaskGraph::TaskGraph(TaskGraph&&) noexcept = default;
TaskGraph& TaskGraph::operator=(TaskGraph&&) noexcept = default;
TaskGraph::~TaskGraph() = default;

TaskId TaskGraph::add(Task task) {
  graph_->change();
  graph_->tasks.push_back(std::move(task));
  graph_->waits.push_back(0);
  return TaskId{size() - 1};
}

void TaskGraph::depends(TaskId after, TaskId before) {
  assert(after != before);
  assert(after.value < size() && before.value < size());
  graph_->change();
  graph_->edges.emplace_back(before.value, after.value);
  ++graph_->waits[static_cast<std::size_t>(after.value)];
}

int TaskGraph::size() const { return static_cast<int>(graph_->tasks.size()); }
const Task& TaskGraph::task(TaskId id) const {
  return graph_->tasks[static_cast<std::size_t>(id.value)];
}

std::span<const Task> TaskGraph::tasks() const { return graph_->tasks; }

int TaskGraph::waits_for(TaskId id) const {
  return graph_->waits[static_cast<std::size_t>(id.value)];
}

std::span<const int> TaskGraph::successors(TaskId id) const {
  return row_of(graph_->forward(), id.value);
}

std::span<const int> TaskGraph::predecessors(TaskId id) const {
  return row_of(graph_->backward(), id.value);
}

std::vector<TaskId> TaskGraph::in_order() const {
  std::vector<int> reversed;
  reversed.reserve(static_cast<std::size_t>(size()));
  try {
    boost::topological_sort(graph_->forward(), std::back_inserter(reversed));
  } catch (const boost::not_a_dag&) {
    return {};
  }
  std::vector<TaskId> order;
  order.reserve(reversed.size());
  std::transform(reversed.rbegin(), reversed.rend(), std::back_inserter(order), task_id);
  return order;
}

}  // namespace orrery
