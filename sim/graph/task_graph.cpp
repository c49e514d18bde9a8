#include "sim/graph/task_graph.hpp"

#include <algorithm>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/topological_sort.hpp>
#include <cassert>
#include <iterator>
#include <optional>
#include <utility>

namespace orrery {
namespace {

// Rows of successors and of predecessors: two arrays each, where a list a vertex would be two
// allocations a task.
using Rows = boost::compressed_sparse_row_graph<boost::bidirectionalS, boost::no_property,
                                                boost::no_property, boost::no_property, int, int>;

TaskId task_id(int vertex) { return TaskId{vertex}; }

}  // namespace

struct TaskGraph::Graph {
  std::vector<Task> tasks;
  std::vector<std::pair<int, int>> edges;  // Before, after; in the order of depends().
  std::optional<Rows> rows;                // Of both, made when first asked for.

  const Rows& up_to_date() {
    if (!rows)
      rows.emplace(boost::edges_are_unsorted_multi_pass, edges.begin(), edges.end(),
                   static_cast<int>(tasks.size()));
    return *rows;
  }
};

TaskGraph::TaskGraph() : graph_{std::make_unique<Graph>()} {}
TaskGraph::TaskGraph(TaskGraph&&) noexcept = default;
TaskGraph& TaskGraph::operator=(TaskGraph&&) noexcept = default;
TaskGraph::~TaskGraph() = default;

TaskId TaskGraph::add(Task task) {
  graph_->rows.reset();
  graph_->tasks.push_back(std::move(task));
  return TaskId{size() - 1};
}

void TaskGraph::depends(TaskId after, TaskId before) {
  assert(after != before);
  assert(after.value < size() && before.value < size());
  graph_->rows.reset();
  graph_->edges.emplace_back(before.value, after.value);
}

int TaskGraph::size() const { return static_cast<int>(graph_->tasks.size()); }
const Task& TaskGraph::task(TaskId id) const {
  return graph_->tasks[static_cast<std::size_t>(id.value)];
}

int TaskGraph::waits_for(TaskId id) const {
  return static_cast<int>(boost::in_degree(id.value, graph_->up_to_date()));
}

void TaskGraph::for_each_successor(TaskId id, const std::function<void(TaskId)>& visit) const {
  const Rows& rows = graph_->up_to_date();
  for (auto [edge, end] = boost::out_edges(id.value, rows); edge != end; ++edge)
    visit(task_id(boost::target(*edge, rows)));
}

void TaskGraph::for_each_predecessor(TaskId id, const std::function<void(TaskId)>& visit) const {
  const Rows& rows = graph_->up_to_date();
  for (auto [edge, end] = boost::in_edges(id.value, rows); edge != end; ++edge)
    visit(task_id(boost::source(*edge, rows)));
}

std::vector<TaskId> TaskGraph::in_order() const {
  std::vector<int> reversed;
  reversed.reserve(static_cast<std::size_t>(size()));
  try {
    boost::topological_sort(graph_->up_to_date(), std::back_inserter(reversed));
  } catch (const boost::not_a_dag&) {
    return {};
  }
  std::vector<TaskId> order;
  order.reserve(reversed.size());
  std::transform(reversed.rbegin(), reversed.rend(), std::back_inserter(order), task_id);
  return order;
}

}  // namespace orrery
