#include "sim/cluster/fabric_routes.hpp"

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <cassert>
#include <deque>
#include <vector>

namespace orrery {
namespace {

struct Step {
  int wire = 0;  // Index into the plan's wires.
};

// Two vertices a switch: while a route may still rise, and once it has gone down.
using Steps = boost::compressed_sparse_row_graph<boost::bidirectionalS, boost::no_property, Step>;
using Vertex = boost::graph_traits<Steps>::vertex_descriptor;

Vertex rising(int at_switch) { return static_cast<Vertex>(2 * at_switch); }
Vertex falling(int at_switch) { return static_cast<Vertex>(2 * at_switch + 1); }

constexpr int no_route = -1;

Steps steps_of(const FabricPlan& plan) {
  std::vector<std::pair<Vertex, Vertex>> ends;
  std::vector<Step> steps;
  const auto add = [&](Vertex from, Vertex to, std::size_t wire) {
    ends.emplace_back(from, to);
    steps.push_back({static_cast<int>(wire)});
  };
  const std::vector<FabricWire>& wires = plan.wires();
  for (std::size_t i = 0; i < wires.size(); ++i) {
    const FabricWire& wire = wires[i];
    if (wire.down) continue;
    const bool falls = plan.level(wire.to) < plan.level(wire.from);
    add(rising(wire.from), falls ? falling(wire.to) : rising(wire.to), i);
    if (falls) add(falling(wire.from), falling(wire.to), i);
  }
  return Steps{boost::edges_are_unsorted_multi_pass, ends.begin(), ends.end(), steps.begin(),
               static_cast<Vertex>(2 * plan.switches())};
}

}  // namespace

struct FabricRoutes::State {
  explicit State(const FabricPlan& plan)
      : steps{steps_of(plan)}, targets(static_cast<std::size_t>(plan.switches())) {}

  // Next hops of a flow: `count` of `hops`, from `first`. Found on the first visit.
  struct Choice {
    int first = no_route;
    int count = 0;
  };
  struct Hop {
    Vertex to;
    int wire;
  };
  // Routes to a switch, by the vertex that they start from; empty until first used.
  struct Target {
    std::vector<int> distances;
    std::vector<Choice> choices;
  };

  Steps steps;
  std::vector<Target> targets;
  std::vector<Hop> hops;

  const std::vector<int>& distances_to(int target) {
    std::vector<int>& distance = targets[static_cast<std::size_t>(target)].distances;
    if (!distance.empty()) return distance;
    distance.assign(boost::num_vertices(steps), no_route);
    std::deque<Vertex> queue{rising(target), falling(target)};
    for (const Vertex end : queue) distance[end] = 0;
    for (; !queue.empty(); queue.pop_front()) {
      const Vertex at = queue.front();
      const auto [first, last] = boost::in_edges(at, steps);
      for (auto edge = first; edge != last; ++edge) {
        const Vertex before = boost::source(*edge, steps);
        if (distance[before] != no_route) continue;
        distance[before] = distance[at] + 1;
        queue.push_back(before);
      }
    }
    return distance;
  }

  Choice choice(Target& target, Vertex at) {
    if (target.choices.empty()) target.choices.resize(boost::num_vertices(steps));
    Choice& choice = target.choices[at];
    if (choice.first != no_route) return choice;
    choice.first = static_cast<int>(hops.size());
    const auto [first, last] = boost::out_edges(at, steps);
    for (auto edge = first; edge != last; ++edge) {
      const Vertex next = boost::target(*edge, steps);
      if (target.distances[next] == target.distances[at] - 1)
        hops.push_back({next, steps[*edge].wire});
    }
    choice.count = static_cast<int>(hops.size()) - choice.first;
    return choice;
  }
};

FabricRoutes::FabricRoutes(const FabricPlan& plan) : state_{std::make_unique<State>(plan)} {}
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
  State& state = *state_;
  Vertex at = rising(from);
  const int length = state.distances_to(to)[at];
  assert(length != no_route);
  std::vector<int> wires;
  wires.reserve(static_cast<std::size_t>(length));
  for (int hop = 0; hop < length; ++hop) {
    const State::Choice choice = state.choice(state.targets[static_cast<std::size_t>(to)], at);
    const int taken = choice.first + ecmp_choice(flow, hop, choice.count);
    const auto [next, wire] = state.hops[static_cast<std::size_t>(taken)];
    wires.push_back(wire);
    at = next;
  }
  return wires;
}

}  // namespace orrery
