#include "sim/cluster/domain_graph.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <cassert>
#include <cstdint>
#include <limits>
#include <unordered_map>

namespace orrery {
namespace {

constexpr int unlinked = -1;

struct Wire {
  int link = unlinked;  ///< Index into links(), or unlinked where the edge is free.
  double cost = 0.0;
};

using Wires =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, Wire>;
using Vertex = boost::graph_traits<Wires>::vertex_descriptor;
using Edge = boost::graph_traits<Wires>::edge_descriptor;

// Costs only order the routes, as NCCL orders its path types NVL, NVB, PIX, PXB, PHB, SYS
// (src/graph/topo.h): each exceeds all links of the previous kind that a route may have.
constexpr double nvlink_cost = 1.0;
constexpr double pcie_cost = 10.0;
constexpr double cpu_cost = 50.0;  // Twice for a route through a socket: in and out.
constexpr double socket_cost = 200.0;
constexpr double forward_cost = 1000.0;  // A GPU that forwards data from PCIe.
constexpr double infinite = std::numeric_limits<double>::max();

struct Search {
  std::vector<Edge> entry;  // The last edge of the best route to each vertex.
  std::vector<double> cost;
};

struct EntryRecorder : boost::dijkstra_visitor<> {
  explicit EntryRecorder(std::vector<Edge>& entry) : entry_{&entry} {}
  void edge_relaxed(const Edge& edge, const Wires& wires) const {
    (*entry_)[boost::target(edge, wires)] = edge;
  }
  std::vector<Edge>* entry_;
};

std::string node_name(int node) { return "node" + std::to_string(node); }

}  // namespace

struct DomainGraph::Graph {
  struct Gpu {
    Vertex sends;     // NVLink arrives here as well, to be forwarded.
    Vertex receives;  // End of all routes to the GPU.
  };
  struct Nic {
    Vertex sends, receives;
    Vertex out, in;  // Beyond its links: the fabric.
  };

  const System system;
  const std::vector<LinkOverride> changes;
  Wires wires;
  std::vector<NamedLink> links;
  std::vector<std::string> cable_names;  // Names of cables, of both directions, by link.
  std::vector<Gpu> gpus;
  std::vector<Nic> nics;
  std::unordered_map<Vertex, Search> searches;
  std::unordered_map<std::uint64_t, Path> paths;
  std::vector<std::vector<int>> exits, entrances;  // NICs of each GPU; empty until first used.

  Graph(const System& plan, const std::vector<LinkOverride>& overrides)
      : system{plan}, changes{overrides} {}

  void add_nics(int node);
  void add_gpus(int node, Vertex hub);
  void add_tree(int node);
  void add_pairs(int node);

  int nics_per_node() const { return nics_in_routes(system); }
  int own_nic(int gpu) const { return gpu * nics_per_node() / system.gpus_per_node; }
  bool has_switch() const {
    return system.wiring != NodeWiring::pcie && system.nvlink_pairs.empty();
  }

  void free_edge(Vertex from, Vertex to, double cost = 0.0) {
    boost::add_edge(from, to, Wire{unlinked, cost}, wires);
  }

  // Adds the link, with its overrides, and its edge unless it is down.
  void link_edge(Vertex from, Vertex to, NamedLink named, const std::string& cable, double cost) {
    bool down = false;
    Link& link = named.link;
    for (const LinkOverride& change : changes) {
      if (change.link != cable && change.link != named.name) continue;
      down = down || change.down;
      if (change.bandwidth > BytesPerSecond{})
        link.capacity =
            link.is_nic() ? system.network_efficiency * change.bandwidth : change.bandwidth;
      link.latency += change.extra_latency;
    }
    if (!down) boost::add_edge(from, to, Wire{static_cast<int>(links.size()), cost}, wires);
    links.push_back(std::move(named));
    cable_names.push_back(cable);
  }

  /// Both directions of a wire: up from `sends` to `outer`, down from `outer_in` to `receives`.
  /// `both` is the link less its kind, with the name that the two have in common.
  void wire(Vertex sends, Vertex outer, Vertex outer_in, Vertex receives, const NamedLink& both,
            LinkKind up, LinkKind down, double cost) {
    NamedLink named = both;
    named.link.kind = up;
    named.name = both.name + ".up";
    link_edge(sends, outer, named, both.name, cost);
    named.link.kind = down;
    named.name = both.name + ".down";
    link_edge(outer_in, receives, named, both.name, cost);
  }

  const Search& search(Vertex source) {
    const auto [found, is_new] = searches.try_emplace(source);
    if (is_new) {
      Search& search = found->second;
      search.entry.resize(boost::num_vertices(wires));
      search.cost.assign(boost::num_vertices(wires), infinite);
      boost::dijkstra_shortest_paths(
          wires, source,
          boost::weight_map(boost::get(&Wire::cost, wires))
              .distance_map(boost::make_iterator_property_map(
                  search.cost.begin(), boost::get(boost::vertex_index, wires)))
              .distance_inf(infinite)
              .visitor(EntryRecorder{search.entry}));
    }
    return found->second;
  }

  const Path& path(Vertex from, Vertex to) {
    const auto [found, is_new] = paths.try_emplace(std::uint64_t{from} << 32 | to);
    Path& path = found->second;
    if (!is_new) return path;
    const Search& best = search(from);
    if (best.cost[to] == infinite) return path;
    path.exists = true;
    for (Vertex at = to; at != from; at = boost::source(best.entry[at], wires)) {
      const int link = wires[best.entry[at]].link;
      if (link == unlinked) continue;
      path.links.push_back(link);
      const LinkKind kind = links[static_cast<std::size_t>(link)].link.kind;
      path.over_nvlink = path.over_nvlink || kind == LinkKind::nvlink_up;
    }
    std::reverse(path.links.begin(), path.links.end());
    return path;
  }

  // NICs from `first` to before `last` that `cost` finds a route for, the cheapest first.
  template <class Cost>
  std::vector<int> ranked(int first, int last, int own, Cost cost) {
    std::vector<std::pair<double, int>> order;
    for (int nic = first; nic < last; ++nic)
      if (const double c = cost(nics[static_cast<std::size_t>(nic)]); c != infinite)
        order.emplace_back(c, nic);
    std::stable_sort(order.begin(), order.end(), [own](const auto& a, const auto& b) {
      if (a.first != b.first) return a.first < b.first;
      return a.second == own && b.second != own;
    });
    std::vector<int> result;
    for (const auto& [c, nic] : order) result.push_back(nic);
    return result;
  }

  template <class Cost>
  const std::vector<int>& nearest_nics(std::vector<std::vector<int>>& known, int gpu, Cost cost) {
    std::vector<int>& list = known[static_cast<std::size_t>(gpu)];
    if (list.empty()) {
      const int per_node = nics_per_node();
      const int first = gpu / system.gpus_per_node * per_node;
      const int own = first + own_nic(gpu % system.gpus_per_node);
      list = ranked(first, first + per_node, own, cost);
      if (list.empty()) list = ranked(0, static_cast<int>(nics.size()), own, cost);
    }
    return list;
  }
};

// A route crosses one wire up and one down, so that each link has half of its latency.
constexpr double half = 0.5;

void DomainGraph::Graph::add_nics(int node) {
  for (int i = 0; i < nics_per_node(); ++i) {
    const Nic nic{boost::add_vertex(wires), boost::add_vertex(wires), boost::add_vertex(wires),
                  boost::add_vertex(wires)};
    nics.push_back(nic);
    const double together = system.nics_per_node / nics_per_node();
    wire(nic.sends, nic.out, nic.in, nic.receives,
         {.name = node_name(node) + "." + nic_name(system, i),
          .link = {.kind = {},
                   .capacity = together * system.network_efficiency * system.nic,
                   .latency = half * system.network_latency,
                   .node = node,
                   .owner = i}},
         LinkKind::nic_up, LinkKind::nic_down, 0.0);
  }
}

// `hub`: the NVSwitch or root complex that all GPUs of the domain share.
void DomainGraph::Graph::add_gpus(int node, Vertex hub) {
  const bool is_pcie = system.wiring == NodeWiring::pcie;
  for (int i = 0; i < system.gpus_per_node; ++i) {
    const Gpu gpu{boost::add_vertex(wires), boost::add_vertex(wires)};
    gpus.push_back(gpu);
    free_edge(gpu.sends, gpu.receives);
    free_edge(gpu.receives, gpu.sends, forward_cost);
    NamedLink link{.name = node_name(node) + ".gpu" + std::to_string(i),
                   .link = {.kind = {},
                            .capacity = system.scale_up,
                            .latency = half * system.scale_up_latency,
                            .node = node,
                            .owner = i}};
    if (has_switch()) {
      // The first of equally good forwarding GPUs is used.
      NamedLink nvlink = link;
      nvlink.name += ".nvlink";
      wire(gpu.sends, hub, hub, gpu.sends, nvlink, LinkKind::nvlink_up, LinkKind::nvlink_down,
           nvlink_cost + 1e-6 * i);
    }
    if (!system.pcie_tree.empty()) continue;  // It brings its own slots.
    const Vertex slot = boost::add_vertex(wires);
    if (is_pcie) {
      link.name += ".pcie";
      wire(gpu.sends, slot, slot, gpu.receives, link, LinkKind::pcie_up, LinkKind::pcie_down,
           pcie_cost);
      free_edge(slot, hub, cpu_cost);
      free_edge(hub, slot, cpu_cost);
    } else {
      free_edge(gpu.sends, slot);
      free_edge(slot, gpu.receives);
    }
    const Nic& nic = nics[static_cast<std::size_t>(node * nics_per_node() + own_nic(i))];
    free_edge(slot, nic.sends);
    free_edge(nic.receives, slot);
  }
}

void DomainGraph::Graph::add_tree(int node) {
  const PcieTree& tree = system.pcie_tree;
  const bool is_pcie = system.wiring == NodeWiring::pcie;
  std::vector<Vertex> branches;
  for (std::size_t i = 0; i < tree.branches.size(); ++i)
    branches.push_back(boost::add_vertex(wires));
  const auto entry_cost = [&](int branch) {
    return tree.branches[static_cast<std::size_t>(branch)].parent < 0 ? cpu_cost : 0.0;
  };
  for (std::size_t i = 0; i < tree.branches.size(); ++i) {
    const PcieBranch& branch = tree.branches[i];
    if (branch.parent >= 0) {
      const Vertex parent = branches[static_cast<std::size_t>(branch.parent)];
      wire(branches[i], parent, parent, branches[i],
           {.name = node_name(node) + "." + branch.name,
            .link = {.kind = {},
                     .capacity = branch.bandwidth,
                     .latency = {},  // Part of the system's software-to-software latency.
                     .node = node,
                     .owner = static_cast<int>(i)}},
           LinkKind::pcie_up, LinkKind::pcie_down, pcie_cost + entry_cost(branch.parent));
      continue;
    }
    for (std::size_t other = 0; other < i; ++other)
      if (tree.branches[other].parent < 0)
        for (const auto& [from, to] : {std::pair{other, i}, std::pair{i, other}})
          link_edge(branches[from], branches[to],
                    {.name = node_name(node) + "." + tree.branches[from].name + "-" +
                             tree.branches[to].name,
                     .link = {.kind = LinkKind::socket_link,
                              .capacity = tree.socket_link,
                              .latency = {},
                              .node = node,
                              .owner = static_cast<int>(from)}},
                    node_name(node) + "." + tree.branches[other].name + "-" + branch.name,
                    socket_cost);
  }
  for (int i = 0; i < system.gpus_per_node; ++i) {
    const int place = tree.gpus[static_cast<std::size_t>(i)];
    const Vertex branch = branches[static_cast<std::size_t>(place)];
    const Gpu& gpu = gpus[static_cast<std::size_t>(node * system.gpus_per_node + i)];
    // The network's latency includes the route to the NIC if GPUs have NVLink.
    wire(gpu.sends, branch, branch, gpu.receives,
         {.name = node_name(node) + ".gpu" + std::to_string(i) + ".pcie",
          .link = {.kind = {},
                   .capacity = is_pcie ? system.scale_up : system.gpu.pcie,
                   .latency = is_pcie ? half * system.scale_up_latency : Seconds{},
                   .node = node,
                   .owner = i}},
         LinkKind::pcie_up, LinkKind::pcie_down, pcie_cost + entry_cost(place));
  }
  for (int i = 0; i < nics_per_node(); ++i) {
    const int place = tree.nics[static_cast<std::size_t>(i)];
    const Nic& nic = nics[static_cast<std::size_t>(node * nics_per_node() + i)];
    free_edge(branches[static_cast<std::size_t>(place)], nic.sends, pcie_cost + entry_cost(place));
    free_edge(nic.receives, branches[static_cast<std::size_t>(place)],
              pcie_cost + entry_cost(place));
  }
}

void DomainGraph::Graph::add_pairs(int node) {
  BytesPerSecond widest;
  for (const NvlinkPair& pair : system.nvlink_pairs) widest = std::max(widest, pair.bandwidth);
  for (const NvlinkPair& pair : system.nvlink_pairs)
    for (const auto& [from, to] :
         {std::pair{pair.first, pair.second}, std::pair{pair.second, pair.first}}) {
      const auto vertex = [&](int gpu) {
        return gpus[static_cast<std::size_t>(node * system.gpus_per_node + gpu)].sends;
      };
      const auto name = [node](int a, int b) {
        return node_name(node) + ".gpu" + std::to_string(a) + "-gpu" + std::to_string(b) +
               ".nvlink";
      };
      // The wider of routes with as many links is used; never a longer one.
      const double narrowness = 0.01 * (1.0 - pair.bandwidth / widest);
      link_edge(vertex(from), vertex(to),
                {.name = name(from, to),
                 .link = {.kind = LinkKind::nvlink_up,
                          .capacity = pair.bandwidth,
                          .latency = system.scale_up_latency,
                          .node = node,
                          .owner = from}},
                name(pair.first, pair.second), nvlink_cost + narrowness);
    }
}

DomainGraph::DomainGraph(const System& system, const std::vector<LinkOverride>& changes)
    : graph_{std::make_unique<Graph>(system, changes)} {
  const int nodes = system.nvlink_domain / system.gpus_per_node;
  assert(nodes * system.gpus_per_node == system.nvlink_domain);
  // The "switch" of a PCIe node is the root complex, and a domain is one node.
  assert(system.wiring != NodeWiring::pcie || nodes == 1);
  const Vertex hub = boost::add_vertex(graph_->wires);
  for (int node = 0; node < nodes; ++node) {
    graph_->add_nics(node);
    graph_->add_gpus(node, hub);
    if (!system.pcie_tree.empty()) graph_->add_tree(node);
    graph_->add_pairs(node);
  }
  graph_->exits.resize(graph_->gpus.size());
  graph_->entrances.resize(graph_->gpus.size());
}

DomainGraph::DomainGraph(DomainGraph&&) noexcept = default;
DomainGraph& DomainGraph::operator=(DomainGraph&&) noexcept = default;
DomainGraph::~DomainGraph() = default;

const std::vector<NamedLink>& DomainGraph::links() const { return graph_->links; }

bool DomainGraph::knows(const std::string& name) const {
  const auto& cables = graph_->cable_names;
  return std::find(cables.begin(), cables.end(), name) != cables.end() ||
         std::any_of(links().begin(), links().end(),
                     [&](const NamedLink& link) { return link.name == name; });
}

std::vector<std::string> DomainGraph::cables() const {
  std::vector<std::string> names = graph_->cable_names;
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

const DomainGraph::Path& DomainGraph::inside(int from, int to) {
  return graph_->path(graph_->gpus[static_cast<std::size_t>(from)].sends,
                      graph_->gpus[static_cast<std::size_t>(to)].receives);
}

const DomainGraph::Path& DomainGraph::to_nic(int gpu, int nic) {
  return graph_->path(graph_->gpus[static_cast<std::size_t>(gpu)].sends,
                      graph_->nics[static_cast<std::size_t>(nic)].out);
}

const DomainGraph::Path& DomainGraph::from_nic(int nic, int gpu) {
  return graph_->path(graph_->nics[static_cast<std::size_t>(nic)].in,
                      graph_->gpus[static_cast<std::size_t>(gpu)].receives);
}

const std::vector<int>& DomainGraph::exits(int gpu) {
  const auto& from = graph_->gpus[static_cast<std::size_t>(gpu)];
  return graph_->nearest_nics(graph_->exits, gpu, [&](const Graph::Nic& nic) {
    return graph_->search(from.sends).cost[nic.out];
  });
}

const std::vector<int>& DomainGraph::entrances(int gpu) {
  const auto& to = graph_->gpus[static_cast<std::size_t>(gpu)];
  return graph_->nearest_nics(graph_->entrances, gpu, [&](const Graph::Nic& nic) {
    return graph_->search(nic.in).cost[to.receives];
  });
}

}  // namespace orrery
