#include "sim/graph/task_graph.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/topological_sort.hpp>
#include <cassert>
#include <iterator>

namespace orrery {
namespace {

using Boosted = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, Task>;
using Vertex = boost::graph_traits<Boosted>::vertex_descriptor;

Vertex vertex(TaskId id) { return static_cast<Vertex>(id.value); }
TaskId task_id(Vertex vertex) { return TaskId{static_cast<int>(vertex)}; }

}  // namespace

struct TaskGraph::Graph {
  Boosted boosted;
};

TaskGraph::TaskGraph() : graph_{std::make_unique<Graph>()} {}
TaskGraph::TaskGraph(TaskGraph&&) noexcept = default;
TaskGraph& TaskGraph::operator=(TaskGraph&&) noexcept = default;
TaskGraph::~TaskGraph() = default;

TaskId TaskGraph::add(Task task) {
  return task_id(boost::add_vertex(std::move(task), graph_->boosted));
}

void TaskGraph::depends(TaskId after, TaskId before) {
  assert(after != before);
  boost::add_edge(vertex(before), vertex(after), graph_->boosted);
}

int TaskGraph::size() const { return static_cast<int>(boost::num_vertices(graph_->boosted)); }
const Task& TaskGraph::task(TaskId id) const { return graph_->boosted[vertex(id)]; }

int TaskGraph::waits_for(TaskId id) const {
  return static_cast<int>(boost::in_degree(vertex(id), graph_->boosted));
}

void TaskGraph::for_each_successor(TaskId id, const std::function<void(TaskId)>& visit) const {
  for (auto [edge, end] = boost::out_edges(vertex(id), graph_->boosted); edge != end; ++edge)
    visit(task_id(boost::target(*edge, graph_->boosted)));
}

void TaskGraph::for_each_predecessor(TaskId id, const std::function<void(TaskId)>& visit) const {
  for (auto [edge, end] = boost::in_edges(vertex(id), graph_->boosted); edge != end; ++edge)
    visit(task_id(boost::source(*edge, graph_->boosted)));
}

std::vector<TaskId> TaskGraph::in_order() const {
  std::vector<Vertex> reversed;
  reversed.reserve(static_cast<std::size_t>(size()));
  try {
    boost::topological_sort(graph_->boosted, std::back_inserter(reversed));
  } catch (const boost::not_a_dag&) {
    return {};
  }
  std::vector<TaskId> order;
  order.reserve(reversed.size());
  std::transform(reversed.rbegin(), reversed.rend(), std::back_inserter(order), task_id);
  return order;
}

}  // namespace orrery
