#include "sim/cluster/fabric_plan.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <cassert>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "sim/cluster/fabric_routes.hpp"
#include "sim/core/nearest.hpp"

namespace orrery {
namespace {

int groups_of(int things, int size) { return (things + size - 1) / size; }

// "leaf12": its kind, and 12; or -1 if it does not end in a number.
std::pair<std::string, int> split(const std::string& name) {
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  int number = -1;
  std::from_chars(name.data() + digits, name.data() + name.size(), number);
  return {name.substr(0, digits), number};
}

}  // namespace

FabricPlan::FabricPlan(const System& system, int nodes)
    : shape_{system.shape},
      nodes_{nodes},
      nics_{nics_in_routes(system)},
      nic_{static_cast<double>(system.nics_per_node / nics_in_routes(system)) *
           system.network_efficiency * system.nic},
      efficiency_{system.network_efficiency} {
  assert(nodes >= 1);
  constexpr std::int64_t most_wires = 10'000'000;
  if (const std::int64_t wires = count_wires(); wires > most_wires)
    fail_infeasible({"system " + system.name, ""},
                    "its fabric has " + std::to_string(wires) + " links between switches, more " +
                        "than the " + std::to_string(most_wires) + " that are simulated",
                    "check the counts of fabric_shape, or use fewer GPUs");
  switch (shape_.layout) {
    case FabricLayout::single_switch:
      names_.emplace_back("fabric");
      levels_.push_back(0);
      break;
    case FabricLayout::leaf_spine:
    case FabricLayout::rail_optimized:
      build_leaf_spine();
      break;
    case FabricLayout::fat_tree:
      build_fat_tree();
      break;
    case FabricLayout::dragonfly:
      build_dragonfly();
      break;
    case FabricLayout::explicit_links:
      build_explicit();
      break;
  }
}

int FabricPlan::switch_of(int node, int nic) const {
  assert(0 <= node && node < nodes_ && 0 <= nic && nic < nics_);
  if (shape_.layout == FabricLayout::single_switch) return 0;
  if (shape_.layout == FabricLayout::explicit_links)
    return shape_.ports[index(node * nics_ + nic)].at_switch;
  const int row = node / shape_.nodes_per_leaf;
  return shape_.rails ? row * nics_ + nic : row;  // Leaves are the first switches.
}

std::string FabricPlan::wire_name(int wire) const {
  const FabricWire& w = wires_[index(wire)];
  return name(w.from) + "-" + name(w.to);
}

std::int64_t FabricPlan::count_wires() const {
  const std::int64_t rails = shape_.rails ? nics_ : 1;
  const std::int64_t rows =
      shape_.nodes_per_leaf > 0 ? groups_of(nodes_, shape_.nodes_per_leaf) : 0;
  switch (shape_.layout) {
    case FabricLayout::single_switch:
      return 0;
    case FabricLayout::leaf_spine:
    case FabricLayout::rail_optimized:
      return 2 * rows * rails * shape_.spines;
    case FabricLayout::fat_tree: {
      const std::int64_t pods = (rows + shape_.leaves_per_pod - 1) / shape_.leaves_per_pod * rails;
      return 2 * (rows * rails + pods * (shape_.cores / core_groups(shape_))) * shape_.spines;
    }
    case FabricLayout::dragonfly: {
      const std::int64_t routers = shape_.routers_per_group;
      return shape_.groups * routers * (routers - 1 + shape_.global_links);
    }
    case FabricLayout::explicit_links:
      return 2 * static_cast<std::int64_t>(shape_.links.size());
  }
  return 0;
}

int FabricPlan::add_switch(const std::string& kind, int number, int level) {
  names_.push_back(kind + std::to_string(number));
  levels_.push_back(level);
  return switches() - 1;
}

void FabricPlan::join(int lower, int upper, LinkKind up, LinkKind down, BytesPerSecond line_rate,
                      Seconds latency) {
  const BytesPerSecond capacity = efficiency_ * line_rate;
  wires_.push_back({lower, upper, up, capacity, latency, false});
  wires_.push_back({upper, lower, down, capacity, latency, false});
}

void FabricPlan::build_leaf_spine() {
  const int leaves = groups_of(nodes_, shape_.nodes_per_leaf) * (shape_.rails ? nics_ : 1);
  for (int leaf = 0; leaf < leaves; ++leaf) add_switch("leaf", leaf, 0);
  for (int spine = 0; spine < shape_.spines; ++spine) add_switch("spine", spine, 1);
  for (int leaf = 0; leaf < leaves; ++leaf)
    for (int spine = 0; spine < shape_.spines; ++spine)
      join(leaf, leaves + spine, LinkKind::leaf_up, LinkKind::leaf_down, shape_.uplink,
           shape_.switch_latency);
}

void FabricPlan::build_fat_tree() {
  const int rows = groups_of(nodes_, shape_.nodes_per_leaf);
  const int rails = shape_.rails ? nics_ : 1;
  const int leaves = rows * rails;
  const int pods = groups_of(rows, shape_.leaves_per_pod) * rails;
  for (int leaf = 0; leaf < leaves; ++leaf) add_switch("leaf", leaf, 0);
  for (int spine = 0; spine < pods * shape_.spines; ++spine) add_switch("spine", spine, 1);
  for (int core = 0; core < shape_.cores; ++core) add_switch("core", core, 2);
  for (int leaf = 0; leaf < leaves; ++leaf) {
    const int pod = leaf / rails / shape_.leaves_per_pod * rails + leaf % rails;
    for (int spine = 0; spine < shape_.spines; ++spine)
      join(leaf, leaves + pod * shape_.spines + spine, LinkKind::leaf_up, LinkKind::leaf_down,
           shape_.uplink, shape_.switch_latency);
  }
  const int groups = core_groups(shape_);
  const int first_core = leaves + pods * shape_.spines;
  for (int spine = 0; spine < pods * shape_.spines; ++spine)
    for (int core = spine % shape_.spines % groups; core < shape_.cores; core += groups)
      join(leaves + spine, first_core + core, LinkKind::spine_up, LinkKind::spine_down,
           shape_.core_uplink, shape_.switch_latency);
}

// Global cable k of a group goes to the (k / cables)th group after it, counting round; its router
// is k / global_links. Both groups of a pair thus agree on which of their cables join them.
void FabricPlan::build_dragonfly() {
  const int in_group = shape_.routers_per_group;
  for (int router = 0; router < shape_.groups * in_group; ++router) add_switch("router", router, 0);
  for (int group = 0; group < shape_.groups; ++group)
    for (int a = 0; a < in_group; ++a)
      for (int b = a + 1; b < in_group; ++b)
        join(group * in_group + a, group * in_group + b, LinkKind::local_link, LinkKind::local_link,
             shape_.local_link, shape_.switch_latency);
  if (shape_.groups == 1) return;
  const int cables = in_group * shape_.global_links / (shape_.groups - 1);
  const auto router_of = [&](int group, int peer, int cable) {
    const int turn = (peer - group - 1 + shape_.groups) % shape_.groups;
    return group * in_group + (turn * cables + cable) / shape_.global_links;
  };
  for (int a = 0; a < shape_.groups; ++a)
    for (int b = a + 1; b < shape_.groups; ++b) {
      std::map<std::pair<int, int>, int> between;  // Cables of the same two routers are one link.
      for (int cable = 0; cable < cables; ++cable)
        ++between[{router_of(a, b, cable), router_of(b, a, cable)}];
      for (const auto& [ends, count] : between)
        join(ends.first, ends.second, LinkKind::global_link, LinkKind::global_link,
             static_cast<double>(count) * shape_.global_link, shape_.switch_latency);
    }
}

void FabricPlan::build_explicit() {
  names_ = shape_.switches;
  levels_.assign(names_.size(), 0);
  const auto find = [&](const std::string& name) {
    return static_cast<int>(std::find(names_.begin(), names_.end(), name) - names_.begin());
  };
  for (const FabricLink& link : shape_.links)
    join(find(link.from), find(link.to), LinkKind::switch_link, LinkKind::switch_link,
         link.bandwidth, link.latency);
}

void FabricPlan::apply(const LinkOverride& change) {
  const std::size_t dash = change.link.find('-');
  const std::string first = change.link.substr(0, dash);
  const std::string second = dash == std::string::npos ? "" : change.link.substr(dash + 1);
  bool found = false;
  for (FabricWire& wire : wires_) {
    const std::string& from = names_[index(wire.from)];
    const std::string& to = names_[index(wire.to)];
    if (!(from == first && to == second) && !(from == second && to == first)) continue;
    found = true;
    wire.down = wire.down || change.down;
    if (change.bandwidth > BytesPerSecond{}) wire.capacity = efficiency_ * change.bandwidth;
  }
  if (found) return;
  const auto beyond = [&](const std::string& word) {
    const auto [kind, number] = split(word);
    int most = -1;
    for (const std::string& name : names_)
      if (const auto [known, last] = split(name); known == kind) most = std::max(most, last);
    return shape_.layout != FabricLayout::explicit_links && most >= 0 && number > most;
  };
  // A fixed number of spines or cores does not grow with the cluster.
  const auto grows = [&](const std::string& word) {
    return word.starts_with("leaf") ||
           (word.starts_with("spine") && shape_.layout == FabricLayout::fat_tree);
  };
  if ((beyond(first) && grows(first)) || (beyond(second) && grows(second))) return;
  std::vector<std::string> known;
  for (std::size_t wire = 0; wire < wires_.size() && wire < 1000; wire += 2)
    known.push_back(wire_name(static_cast<int>(wire)));
  if (known.size() > 16) known.resize(16);
  fail_input(change.place, "'" + change.link + "' is not a link of this system",
             known.empty() ? "name a NIC, as in \"node0.nic0\": this fabric is one switch"
                           : "write it like \"" + known.front() + "\"");
}

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

// Each half of whole leaves, and of whole pods if there are several, sends as much as its NICs, its
// leaves' uplinks and its pods' core links allow: the least of the three. The spines take all that
// the leaves send within a pod, and between the leaves of one row and the next.
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
  // Routers forward their input: the local links can be narrower than either.
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
