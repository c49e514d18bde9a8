#include "sim/cluster/topology_dot.hpp"

#include <cstdio>
#include <map>

#include "sim/cluster/fabric_plan.hpp"

namespace orrery {
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

// Node 0 as its links name it: wires with two directions are one edge.
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
    std::map<int, int> cables;  // By switch: how many of the node's NICs.
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
