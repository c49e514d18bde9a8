#include "sim/cluster/topology_text.hpp"

#include <cmath>
#include <cstdio>
#include <map>

#include "sim/cluster/fabric_plan.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/table.hpp"

namespace orrery {
namespace {

std::string rate(BytesPerSecond bandwidth) {
  const double gigabytes = bandwidth.si() / 1e9;
  if (gigabytes >= 1e4) return grouped(std::llround(gigabytes)) + " GB/s";
  char text[32];
  std::snprintf(text, sizeof text, "%.4g GB/s", gigabytes);
  return text;
}

// "gpu0 to gpu7"; one of them by its own name.
std::string range(const std::string& kind, int count) {
  return kind + "0" + (count > 1 ? " to " + kind + std::to_string(count - 1) : "");
}

std::string topology_row(const std::string& name, const std::string& value) {
  return "  " + name + std::string(name.size() < 22 ? 22 - name.size() : 0, ' ') + " " + value +
         "\n";
}

// Each GPU under the switch that it shares with all, its NIC under it:
//
//     NVSwitch ---+------+-- ...      450 GB/s a GPU, each way
//               gpu0   gpu1  ...
//               nic0   nic1  ...      48.5 GB/s a NIC, each way
std::string shared_hub(const System& system) {
  const int most = 8;  // GPUs that fit a line of 80 columns.
  const int gpus = system.gpus_per_node;
  const int nics = nics_in_routes(system);
  const std::string hub = system.wiring == NodeWiring::nvswitch      ? "NVSwitch"
                          : system.wiring == NodeWiring::nvlink_mesh ? "NVLink mesh"
                                                                     : "root complex";
  std::string bus = "  " + hub + " ", gpu_line(bus.size(), ' '), nic_line(bus.size(), ' ');
  for (int gpu = 0; gpu < std::min(gpus, most); ++gpu) {
    bus += "--+----";
    gpu_line += " gpu" + std::to_string(gpu) + "  ";
    nic_line += " nic" + std::to_string(gpu * nics / gpus) + "  ";
  }
  const std::string more = gpus > most ? " ... gpu" + std::to_string(gpus - 1) : "";
  const auto trimmed = [](std::string line) {
    return line.erase(line.find_last_not_of(' ') + 1) + "\n";
  };
  return trimmed(bus) + trimmed(gpu_line + more) + trimmed(nic_line);
}

std::string pair_table(const System& system) {
  std::vector<Column> columns{{"GB/s", Align::left}};
  for (int gpu = 0; gpu < system.gpus_per_node; ++gpu)
    columns.push_back({"gpu" + std::to_string(gpu)});
  Table table{columns};
  for (int a = 0; a < system.gpus_per_node; ++a) {
    std::vector<std::string> cells{"gpu" + std::to_string(a)};
    for (int b = 0; b < system.gpus_per_node; ++b) {
      std::string cell = "-";
      for (const NvlinkPair& pair : system.nvlink_pairs)
        if ((pair.first == a && pair.second == b) || (pair.first == b && pair.second == a)) {
          cell = rate(pair.bandwidth);
          cell.erase(cell.find(' '));
        }
      cells.push_back(cell);
    }
    table.add_row(cells);
  }
  return table.text();
}

void branch_lines(const System& system, int at, const std::string& indent, std::string& out) {
  const PcieTree& tree = system.pcie_tree;
  for (std::size_t i = 0; i < tree.branches.size(); ++i)
    if (tree.branches[i].parent == at) {
      const PcieBranch& branch = tree.branches[i];
      out += indent + branch.name + (at >= 0 ? "  " + rate(branch.bandwidth) : "") + "\n";
      const std::string below = indent + "  ";
      std::string things;
      for (std::size_t gpu = 0; gpu < tree.gpus.size(); ++gpu)
        if (tree.gpus[gpu] == static_cast<int>(i)) things += " gpu" + std::to_string(gpu);
      for (std::size_t nic = 0; nic < tree.nics.size(); ++nic)
        if (tree.nics[nic] == static_cast<int>(i))
          things += " " + nic_name(system, static_cast<int>(nic));
      if (!things.empty()) out += below + things.substr(1) + "\n";
      branch_lines(system, static_cast<int>(i), below, out);
    }
}

std::string node_drawing(const System& system, const FabricPlan& plan) {
  std::string out = "node\n";
  if (system.nvlink_pairs.empty()) out += shared_hub(system);
  if (!system.nvlink_pairs.empty()) out += pair_table(system);
  if (!system.pcie_tree.empty()) {
    branch_lines(system, -1, "  ", out);
    if (system.pcie_tree.socket_link > BytesPerSecond{})
      out += topology_row("between sockets", rate(system.pcie_tree.socket_link) + " each way");
  }
  out += topology_row("a GPU", rate(system.scale_up) + " each way");
  return out + topology_row("a NIC", rate(plan.nic()) + " each way, payload");
}

int switches_of_level(const FabricPlan& plan, int level) {
  int count = 0;
  for (int i = 0; i < plan.switches(); ++i) count += plan.level(i) == level;
  return count;
}

// The speed of the wires of one kind: "50 GB/s", or "25 to 50 GB/s" if overrides differ.
std::string speeds(const FabricPlan& plan, LinkKind kind) {
  BytesPerSecond least{1e300}, most;
  for (const FabricWire& wire : plan.wires())
    if (wire.kind == kind && !wire.down) {
      least = std::min(least, wire.capacity);
      most = std::max(most, wire.capacity);
    }
  if (most == BytesPerSecond{}) return "down";
  return least == most ? rate(most) : rate(least) + " to " + rate(most);
}

std::string tree_drawing(const System& system, const FabricPlan& plan) {
  const FabricShape& shape = system.shape;
  const auto wires = [&](int links, const std::string& from, const std::string& to, LinkKind kind) {
    return "    |  each " + from + " to " + std::to_string(links) + " " + to + ", " +
           speeds(plan, kind) + " a link\n";
  };
  std::string out;
  if (shape.layout == FabricLayout::fat_tree)
    out += "  " + range("core", shape.cores) + "\n" +
           wires(shape.cores / core_groups(shape), "spine", "cores", LinkKind::spine_up);
  out += "  " + range("spine", switches_of_level(plan, 1)) + "\n" +
         wires(shape.spines, "leaf", "spines", LinkKind::leaf_up);
  out += "  " + range("leaf", switches_of_level(plan, 0)) + "\n    |  " +
         (shape.rails
              ? "NIC i of " + std::to_string(shape.nodes_per_leaf) + " nodes on leaf i of their row"
              : "all NICs of " + std::to_string(shape.nodes_per_leaf) + " nodes a leaf") +
         "\n";
  return out + "  " + range("node", plan.nodes()) + "\n";
}

std::string fabric_drawing(const System& system, const FabricPlan& plan) {
  const FabricShape& shape = system.shape;
  std::string out = "fabric: " + name(shape.layout) + "\n";
  switch (shape.layout) {
    case FabricLayout::single_switch:
      return out + "  one switch that never blocks\n    |  all NICs\n  " +
             range("node", plan.nodes()) + "\n";
    case FabricLayout::leaf_spine:
    case FabricLayout::rail_optimized:
    case FabricLayout::fat_tree:
      return out + tree_drawing(system, plan);
    case FabricLayout::dragonfly:
      out += "  " + std::to_string(shape.groups) + " groups of " +
             std::to_string(shape.routers_per_group) + " routers, joined all to all\n";
      if (shape.routers_per_group > 1)
        out += "    |  in a group " + speeds(plan, LinkKind::local_link) + " a link\n";
      if (shape.groups > 1)
        out += "    |  between groups " + speeds(plan, LinkKind::global_link) + " a link\n";
      return out + "  " + range("router", plan.switches()) + "\n    |  " +
             std::to_string(shape.nodes_per_leaf) + " nodes a router\n  " +
             range("node", plan.nodes()) + "\n";
    case FabricLayout::explicit_links:
      for (std::size_t i = 0; i < plan.wires().size(); i += 2)
        out += "  " + plan.wire_name(static_cast<int>(i)) + "  " +
               (plan.wires()[i].down ? "down" : rate(plan.wires()[i].capacity)) + "\n";
      return out;
  }
  return out;
}

// The searches visit every wire for every switch: some seconds at this bound.
bool searchable(const FabricPlan& plan) {
  return 1.0 * plan.switches() * static_cast<double>(plan.wires().size()) < 1e9;
}

std::string bisection_rows(const System& system, const FabricPlan& plan) {
  const auto closed = closed_form_bisection(system, plan);
  if (plan.nodes() == 1) return topology_row("bisection", "-, one node");
  if (!closed && !searchable(plan))
    return topology_row("bisection", "not sought: too many switches");
  const BytesPerSecond half = closed ? *closed : bisection(plan);
  const double nics = plan.nodes() / 2 * plan.nics_per_node() * plan.nic().si();
  return topology_row("bisection", rate(half) + " each way") +
         topology_row("  of its NICs", percent(half.si() / nics));
}

}  // namespace

std::string topology_text(const System& system, const Topology& topology) {
  const FabricPlan& plan = topology.fabric();
  std::string out = node_drawing(system, plan) + fabric_drawing(system, plan);
  out += "figures for " + grouped(topology.gpus()) + " GPUs\n" + bisection_rows(system, plan);
  if (searchable(plan)) {
    const int longest = diameter(plan);
    out += topology_row("longest path",
                        longest < 0 ? "some NICs have none" : std::to_string(longest) + " links");
  }
  for (const auto& [kind, count] : cable_counts(system, topology))
    out += topology_row("links, " + kind, grouped(count));
  for (const LinkOverride& change : system.link_overrides)
    out += topology_row(change.link, change.down                           ? "down"
                                     : change.bandwidth > BytesPerSecond{} ? rate(change.bandwidth)
                                                                           : "slower to answer");
  for (const GpuOverride& change : system.gpu_overrides)
    out += topology_row("node" + std::to_string(change.node) + ".gpu" + std::to_string(change.gpu),
                        "at " + percent(change.speed) + " of its speed");
  return out;
}

namespace {

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

std::string label(BytesPerSecond bandwidth) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g GB/s", bandwidth.si() / 1e9);
  return quoted(text);
}

std::string edge(const std::string& from, const std::string& to, const std::string& attributes) {
  return "  " + quoted(from) + " -- " + quoted(to) +
         (attributes.empty() ? "" : " [" + attributes + "]") + ";\n";
}

// Node 0 by the names of its links: wires with two directions are one edge.
std::string first_node(const System& system, const Topology& topology) {
  std::string out = "  subgraph cluster_node0 {\n    label=\"node0\";\n";
  for (int gpu = 0; gpu < system.gpus_per_node; ++gpu)
    out += "    " + quoted("node0.gpu" + std::to_string(gpu)) + " [shape=box];\n";
  for (int nic = 0; nic < nics_in_routes(system); ++nic)
    out += "    " + quoted("node0." + nic_name(system, nic)) + " [shape=cds];\n";
  out += "  }\n";
  const PcieTree& tree = system.pcie_tree;
  const auto branch = [&](int index) {
    return "node0." + tree.branches[static_cast<std::size_t>(index)].name;
  };
  for (const auto& [name, link] : topology.domain_links()) {
    if (link.node != 0) continue;
    const std::string gpu = "node0.gpu" + std::to_string(link.owner);
    const std::string width = "label=" + label(link.capacity);
    if (link.kind == LinkKind::nvlink_up && name.ends_with(".up"))
      out += edge(gpu, "NVLink switch", width);
    if (link.kind == LinkKind::pcie_up && tree.empty())
      out += edge(gpu, "node0.root complex", width);
    if (link.kind == LinkKind::pcie_up && !tree.empty()) {
      const bool is_slot = name.ends_with(".pcie.up");
      const auto at = static_cast<std::size_t>(link.owner);
      out += edge(is_slot ? gpu : branch(link.owner),
                  branch(is_slot ? tree.gpus[at] : tree.branches[at].parent), width);
    }
    if (link.kind == LinkKind::socket_link) {
      const std::size_t dash = name.find('-');
      const std::string from = name.substr(0, dash);
      const std::string to = "node0." + name.substr(dash + 1);
      if (from < to) out += edge(from, to, width);
    }
  }
  for (const NvlinkPair& pair : system.nvlink_pairs)
    out += edge("node0.gpu" + std::to_string(pair.first), "node0.gpu" + std::to_string(pair.second),
                "label=" + label(pair.bandwidth));
  if (!tree.empty()) {
    for (std::size_t nic = 0; nic < tree.nics.size(); ++nic)
      out += edge("node0." + nic_name(system, static_cast<int>(nic)), branch(tree.nics[nic]), "");
  } else {
    for (int gpu = 0; gpu < system.gpus_per_node; ++gpu)
      out += edge("node0.gpu" + std::to_string(gpu),
                  "node0." + nic_name(system, gpu * nics_in_routes(system) / system.gpus_per_node),
                  "style=dotted");
  }
  return out;
}

}  // namespace

std::string topology_dot(const System& system, const Topology& topology) {
  const FabricPlan& plan = topology.fabric();
  std::string out = "// orrery\ngraph " + quoted(system.name) + " {\n  rankdir=BT;\n" +
                    first_node(system, topology);
  for (int i = 0; i < plan.switches(); ++i)
    out += "  " + quoted(plan.name(i)) + " [shape=ellipse];\n";
  const std::string width = "label=" + label(plan.nic());
  for (int nic = 0; nic < plan.nics_per_node(); ++nic)
    out += edge("node0." + nic_name(system, nic), plan.name(plan.switch_of(0, nic)), width);
  for (int node = 1; node < plan.nodes(); ++node) {
    std::map<int, int> cables;  // Number of the node's NICs by switch.
    for (int nic = 0; nic < plan.nics_per_node(); ++nic) ++cables[plan.switch_of(node, nic)];
    for (const auto& [at_switch, count] : cables)
      out += edge("node" + std::to_string(node), plan.name(at_switch),
                  "label=\"" + std::to_string(count) + " NIC" + (count > 1 ? "s" : "") + "\"");
  }
  for (std::size_t i = 0; i < plan.wires().size(); i += 2) {
    const FabricWire& wire = plan.wires()[i];
    out += edge(plan.name(wire.from), plan.name(wire.to),
                "label=" + label(wire.capacity) + (wire.down ? ", style=dashed" : ""));
  }
  return out + "}\n";
}

}  // namespace orrery
