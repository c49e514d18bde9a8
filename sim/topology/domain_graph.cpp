#include "sim/topology/domain_graph.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <cassert>
#include <cstdint>
#include <unordered_map>

namespace orrery {
namespace {

constexpr int no_link = -1;

struct Wire {
  int link = no_link;  ///< Index into links(), or no_link where the edge is free.
};

using Wires =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, Wire>;
using Vertex = boost::graph_traits<Wires>::vertex_descriptor;
using Edge = boost::graph_traits<Wires>::edge_descriptor;

}  // namespace

struct DomainGraph::Graph {
  Wires wires;
  std::vector<Link> links;
  std::vector<Vertex> gpus;
  Vertex fabric = 0;
  /// For each source asked so far: the edge by which a shortest way enters each vertex.
  std::unordered_map<Vertex, std::vector<Edge>> entries;
  std::unordered_map<std::uint64_t, std::vector<int>> routes;

  void add_node(const System& system, int node, Vertex scale_up_switch);

  void free_edge(Vertex from, Vertex to) { boost::add_edge(from, to, Wire{}, wires); }

  void link_edge(Vertex from, Vertex to, Link link) {
    boost::add_edge(from, to, Wire{static_cast<int>(links.size())}, wires);
    links.push_back(std::move(link));
  }

  /// Both directions of a wire: up from `sends` to `outer`, down from `outer` to `receives`.
  /// `both` is the link less its kind, with the name that the two have in common.
  void wire(Vertex sends, Vertex receives, Vertex outer, const Link& both, LinkKind up,
            LinkKind down) {
    Link link = both;
    link.kind = up;
    link.name = both.name + ".up";
    link_edge(sends, outer, link);
    link.kind = down;
    link.name = both.name + ".down";
    link_edge(outer, receives, link);
  }

  const std::vector<Edge>& search(Vertex source) {
    const auto [found, is_new] = entries.try_emplace(source);
    if (is_new) {
      found->second.resize(boost::num_vertices(wires));
      boost::breadth_first_search(
          wires, source,
          boost::visitor(boost::make_bfs_visitor(
              boost::record_edge_predecessors(found->second.data(), boost::on_tree_edge{}))));
    }
    return found->second;
  }

  const std::vector<int>& route(Vertex from, Vertex to) {
    const auto [found, is_new] = routes.try_emplace(std::uint64_t{from} << 32 | to);
    if (is_new) {
      const std::vector<Edge>& entry = search(from);
      std::vector<int>& route = found->second;
      for (Vertex at = to; at != from; at = boost::source(entry[at], wires))
        if (const int link = wires[entry[at]].link; link != no_link) route.push_back(link);
      std::reverse(route.begin(), route.end());
    }
    return found->second;
  }
};

namespace {

std::string node_name(int node) { return "node" + std::to_string(node); }

/// The NICs of a node as routes see them. Several GPUs share one NIC, or several NICs serve one GPU
/// and NCCL spreads its channels over them: those count as one of the summed bandwidth.
struct NicPlan {
  int count = 0;     ///< Vertices per node.
  int together = 1;  ///< NICs that one vertex stands for.

  explicit NicPlan(const System& system)
      : count{std::min(system.nics_per_node, system.gpus_per_node)},
        together{system.nics_per_node / count} {}

  std::string name(int nic) const {
    return "nic" + std::to_string(nic) + (together > 1 ? "x" + std::to_string(together) : "");
  }
};

}  // namespace

void DomainGraph::Graph::add_node(const System& system, int node, Vertex scale_up_switch) {
  // A way crosses one wire up and one down, so that each link has half of the way's latency.
  constexpr double half = 0.5;
  struct Nic {
    Vertex sends, receives;
  };
  const NicPlan plan{system};
  std::vector<Nic> nics;
  for (int i = 0; i < plan.count; ++i) {
    const Nic nic{boost::add_vertex(wires), boost::add_vertex(wires)};
    nics.push_back(nic);
    wire(nic.sends, nic.receives, fabric,
         {.name = node_name(node) + "." + plan.name(i),
          .capacity = plan.together * system.network_efficiency * system.nic,
          .latency = half * system.network_latency,
          .node = node,
          .owner = i},
         LinkKind::nic_up, LinkKind::nic_down);
  }
  for (int i = 0; i < system.gpus_per_node; ++i) {
    const Vertex gpu = boost::add_vertex(wires);
    const Vertex slot = boost::add_vertex(wires);
    gpus.push_back(gpu);
    Link link{.name = node_name(node) + ".gpu" + std::to_string(i),
              .capacity = system.scale_up,
              .latency = half * system.scale_up_latency,
              .node = node,
              .owner = i};
    if (system.wiring == NodeWiring::pcie) {
      link.name += ".pcie";
      wire(gpu, gpu, slot, link, LinkKind::pcie_up, LinkKind::pcie_down);
      free_edge(slot, scale_up_switch);
      free_edge(scale_up_switch, slot);
    } else {
      link.name += ".nvlink";
      wire(gpu, gpu, scale_up_switch, link, LinkKind::nvlink_up, LinkKind::nvlink_down);
      free_edge(gpu, slot);
      free_edge(slot, gpu);
    }
    const Nic& nic = nics[static_cast<std::size_t>(i * plan.count / system.gpus_per_node)];
    free_edge(slot, nic.sends);
    free_edge(nic.receives, slot);
  }
}

DomainGraph::DomainGraph(const System& system) : graph_{std::make_unique<Graph>()} {
  const int nodes = system.nvlink_domain / system.gpus_per_node;
  assert(nodes * system.gpus_per_node == system.nvlink_domain);
  // In PCIe nodes the "switch" is the root complex, and a domain is one node.
  assert(system.wiring != NodeWiring::pcie || nodes == 1);
  graph_->fabric = boost::add_vertex(graph_->wires);
  const Vertex scale_up_switch = boost::add_vertex(graph_->wires);
  for (int node = 0; node < nodes; ++node) graph_->add_node(system, node, scale_up_switch);
}

DomainGraph::DomainGraph(DomainGraph&&) noexcept = default;
DomainGraph& DomainGraph::operator=(DomainGraph&&) noexcept = default;
DomainGraph::~DomainGraph() = default;

const std::vector<Link>& DomainGraph::links() const { return graph_->links; }

const std::vector<int>& DomainGraph::inside(int from, int to) {
  return graph_->route(graph_->gpus[static_cast<std::size_t>(from)],
                       graph_->gpus[static_cast<std::size_t>(to)]);
}

const std::vector<int>& DomainGraph::to_fabric(int gpu) {
  return graph_->route(graph_->gpus[static_cast<std::size_t>(gpu)], graph_->fabric);
}

const std::vector<int>& DomainGraph::from_fabric(int gpu) {
  return graph_->route(graph_->fabric, graph_->gpus[static_cast<std::size_t>(gpu)]);
}

}  // namespace orrery
