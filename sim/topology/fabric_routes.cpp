#include "sim/topology/fabric_routes.hpp"

#include <boost/graph/adjacency_list.hpp>
#include <cassert>
#include <deque>
#include <unordered_map>

namespace orrery {
namespace {

struct Step {
  int wire = 0;  // Index into the plan's wires.
};

// Two vertices a switch: while a way may still rise, and once it has gone down.
using Steps = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS,
                                    boost::no_property, Step>;
using Vertex = boost::graph_traits<Steps>::vertex_descriptor;

Vertex rising(int at_switch) { return static_cast<Vertex>(2 * at_switch); }
Vertex falling(int at_switch) { return static_cast<Vertex>(2 * at_switch + 1); }

constexpr int no_way = -1;

}  // namespace

struct FabricRoutes::State {
  explicit State(int switches) : steps(static_cast<std::size_t>(2 * switches)) {}

  Steps steps;
  std::unordered_map<int, std::vector<int>> distances;  // To each switch asked for, by vertex.

  const std::vector<int>& distances_to(int target) {
    const auto [found, is_new] = distances.try_emplace(target);
    std::vector<int>& distance = found->second;
    if (!is_new) return distance;
    distance.assign(boost::num_vertices(steps), no_way);
    std::deque<Vertex> queue{rising(target), falling(target)};
    for (const Vertex end : queue) distance[end] = 0;
    for (; !queue.empty(); queue.pop_front()) {
      const Vertex at = queue.front();
      const auto [first, last] = boost::in_edges(at, steps);
      for (auto edge = first; edge != last; ++edge) {
        const Vertex before = boost::source(*edge, steps);
        if (distance[before] != no_way) continue;
        distance[before] = distance[at] + 1;
        queue.push_back(before);
      }
    }
    return distance;
  }
};

FabricRoutes::FabricRoutes(const FabricPlan& plan)
    : state_{std::make_unique<State>(plan.switches())} {
  Steps& steps = state_->steps;
  const std::vector<FabricWire>& wires = plan.wires();
  for (std::size_t i = 0; i < wires.size(); ++i) {
    const FabricWire& wire = wires[i];
    if (wire.down) continue;
    const bool falls = plan.level(wire.to) < plan.level(wire.from);
    boost::add_edge(rising(wire.from), falls ? falling(wire.to) : rising(wire.to),
                    Step{static_cast<int>(i)}, steps);
    if (falls)
      boost::add_edge(falling(wire.from), falling(wire.to), Step{static_cast<int>(i)}, steps);
  }
}

FabricRoutes::FabricRoutes(FabricRoutes&&) noexcept = default;
FabricRoutes& FabricRoutes::operator=(FabricRoutes&&) noexcept = default;
FabricRoutes::~FabricRoutes() = default;

int FabricRoutes::distance(int from, int to) { return state_->distances_to(to)[rising(from)]; }

std::vector<int> FabricRoutes::distances(int to) {
  const std::vector<int>& by_vertex = state_->distances_to(to);
  std::vector<int> by_switch;
  for (std::size_t i = 0; i < by_vertex.size(); i += 2) by_switch.push_back(by_vertex[i]);
  return by_switch;
}

std::vector<int> FabricRoutes::path(int from, int to, const FlowKey& flow) {
  const std::vector<int>& distance = state_->distances_to(to);
  const Steps& steps = state_->steps;
  Vertex at = rising(from);
  assert(distance[at] != no_way);
  std::vector<int> wires;
  std::vector<boost::graph_traits<Steps>::edge_descriptor> equal;
  while (distance[at] > 0) {
    equal.clear();
    const auto [first, last] = boost::out_edges(at, steps);
    for (auto edge = first; edge != last; ++edge)
      if (distance[boost::target(*edge, steps)] == distance[at] - 1) equal.push_back(*edge);
    const int choice =
        ecmp_choice(flow, static_cast<int>(wires.size()), static_cast<int>(equal.size()));
    wires.push_back(steps[equal[static_cast<std::size_t>(choice)]].wire);
    at = boost::target(equal[static_cast<std::size_t>(choice)], steps);
  }
  return wires;
}

}  // namespace orrery
