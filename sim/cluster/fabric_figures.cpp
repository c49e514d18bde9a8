#include "sim/cluster/fabric_figures.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <cmath>
#include <set>

#include "sim/cluster/fabric_routes.hpp"

namespace orrery {
namespace {

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
// Whole bytes a second: push-relabel on fractions may not end.
struct Pipe {
  std::int64_t capacity = 0;
  std::int64_t residual = 0;
  Traits::edge_descriptor reverse;
};
using Pipes =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, Pipe>;

void add_pipe(Pipes& pipes, std::size_t from, std::size_t to, BytesPerSecond rate) {
  const auto forth = boost::add_edge(from, to, pipes).first;
  const auto back = boost::add_edge(to, from, pipes).first;
  pipes[forth].capacity = std::llround(rate.si());
  pipes[forth].reverse = back;
  pipes[back].reverse = forth;
}

bool changed(const System& system) { return !system.link_overrides.empty(); }

// Of whole leaves, and of whole pods where there are several, each half sends as much as its NICs
// bring, its leaves pass up, and its pods pass on to the cores: the least of the three. Within a
// pod, and between the leaves of one row and the next, the spines take what the leaves send.
std::optional<BytesPerSecond> tree_bisection(const System& system, const FabricPlan& plan) {
  const FabricShape& shape = system.shape;
  const int nodes = plan.nodes();
  const int half = nodes / 2;
  const BytesPerSecond nics = static_cast<double>(half * plan.nics_per_node()) * plan.nic();
  if (nodes <= shape.nodes_per_leaf) return nics;  // One leaf, or one row of rails.
  if (half % shape.nodes_per_leaf != 0 || nodes % 2 != 0) return std::nullopt;
  const double efficiency = system.network_efficiency;
  const int rows = half / shape.nodes_per_leaf;
  const int leaves_in_row = shape.rails ? plan.nics_per_node() : 1;
  const BytesPerSecond leaves =
      static_cast<double>(rows * leaves_in_row * shape.spines) * efficiency * shape.uplink;
  if (shape.layout != FabricLayout::fat_tree || 2 * rows <= shape.leaves_per_pod)
    return std::min(nics, leaves);
  if (rows % shape.leaves_per_pod != 0) return std::nullopt;
  const int pods = rows / shape.leaves_per_pod * leaves_in_row;
  const BytesPerSecond cores =
      static_cast<double>(pods * shape.spines * (shape.cores / core_groups(shape))) * efficiency *
      shape.core_uplink;
  return std::min({nics, leaves, cores});
}

// Half of the groups reach each group of the other half by the same number of cables.
std::optional<BytesPerSecond> dragonfly_bisection(const System& system, const FabricPlan& plan) {
  const FabricShape& shape = system.shape;
  const int of_group = shape.nodes_per_leaf * shape.routers_per_group;
  if (shape.groups % 2 != 0 || plan.nodes() != of_group * shape.groups) return std::nullopt;
  const int half = shape.groups / 2;
  const double cables =
      static_cast<double>(shape.routers_per_group) * shape.global_links / (shape.groups - 1);
  const BytesPerSecond global =
      half * half * cables * system.network_efficiency * shape.global_link;
  // Routers pass on what comes to them: the local links can be narrower than either.
  const BytesPerSecond of_router =
      static_cast<double>(shape.nodes_per_leaf * plan.nics_per_node()) * plan.nic();
  const bool wide = system.network_efficiency * shape.local_link >=
                    of_router + shape.global_links * system.network_efficiency * shape.global_link;
  if (!wide) return std::nullopt;
  return std::min(global, static_cast<double>(half * shape.routers_per_group) * of_router);
}

}  // namespace

std::optional<BytesPerSecond> closed_form_bisection(const System& system, const FabricPlan& plan) {
  if (changed(system)) return std::nullopt;
  switch (system.shape.layout) {
    case FabricLayout::single_switch:
      return static_cast<double>(plan.nodes() / 2 * plan.nics_per_node()) * plan.nic();
    case FabricLayout::leaf_spine:
    case FabricLayout::rail_optimized:
    case FabricLayout::fat_tree:
      return tree_bisection(system, plan);
    case FabricLayout::dragonfly:
      return dragonfly_bisection(system, plan);
    case FabricLayout::explicit_links:
      return std::nullopt;
  }
  return std::nullopt;
}

BytesPerSecond bisection(const FabricPlan& plan) {
  const auto switches = static_cast<std::size_t>(plan.switches());
  Pipes pipes(switches + 2);
  const std::size_t source = switches;
  const std::size_t sink = switches + 1;
  const int half = plan.nodes() / 2;
  std::vector<int> sending(switches), receiving(switches);
  for (int node = 0; node < plan.nodes(); ++node)
    for (int nic = 0; nic < plan.nics_per_node(); ++nic)
      ++(node < half ? sending : receiving)[static_cast<std::size_t>(plan.switch_of(node, nic))];
  for (std::size_t i = 0; i < switches; ++i) {
    if (sending[i] > 0) add_pipe(pipes, source, i, sending[i] * plan.nic());
    if (receiving[i] > 0) add_pipe(pipes, i, sink, receiving[i] * plan.nic());
  }
  for (const FabricWire& wire : plan.wires())
    if (!wire.down)
      add_pipe(pipes, static_cast<std::size_t>(wire.from), static_cast<std::size_t>(wire.to),
               wire.capacity);
  const std::int64_t flow = boost::push_relabel_max_flow(
      pipes, source, sink, boost::get(&Pipe::capacity, pipes), boost::get(&Pipe::residual, pipes),
      boost::get(&Pipe::reverse, pipes), boost::get(boost::vertex_index, pipes));
  return BytesPerSecond{static_cast<double>(flow)};
}

int diameter(const FabricPlan& plan) {
  std::set<int> ends;
  for (int node = 0; node < plan.nodes(); ++node)
    for (int nic = 0; nic < plan.nics_per_node(); ++nic) ends.insert(plan.switch_of(node, nic));
  FabricRoutes routes{plan};
  int most = 0;
  for (const int to : ends) {
    const std::vector<int> distances = routes.distances(to);
    for (const int from : ends) {
      const int distance = distances[static_cast<std::size_t>(from)];
      if (distance < 0) return -1;
      most = std::max(most, distance);
    }
  }
  return most + 2;
}

std::map<std::string, int> cable_counts(const System& system, const Topology& topology) {
  std::map<std::string, int> directions;
  const int nodes = topology.fabric().nodes();
  const int of_domain = system.nvlink_domain / system.gpus_per_node;
  for (const auto& [name, link] : topology.domain_links()) {
    // The last domain may have only some of its nodes.
    const int times = (nodes - link.node + of_domain - 1) / of_domain;
    directions[cable_name(link.kind)] += times;
  }
  for (const FabricWire& wire : topology.fabric().wires()) ++directions[cable_name(wire.kind)];
  for (auto& [kind, count] : directions) count /= 2;
  return directions;
}

}  // namespace orrery
