#include "sim/cluster/topology_text.hpp"

#include <gtest/gtest.h>

#include "tests/support/fabrics.hpp"

namespace orrery::topology_text_test {
namespace {

// Four nodes, two a leaf, one spine at 4 GB/s: half of the nodes brings 8 GB/s, its leaf sends 4.
TEST(TopologyText, DrawsNodeFabricAndFigures) {
  System system = leaf_spine(2, 1, 4e9);
  EXPECT_EQ(topology_text(system, Topology::build(system, 16)),
            "node\n"
            "  NVSwitch --+------+------+------+----\n"
            "            gpu0   gpu1   gpu2   gpu3\n"
            "            nic0   nic1   nic2   nic3\n"
            "  a GPU                  10 GB/s each way\n"
            "  a NIC                  1 GB/s each way, payload\n"
            "fabric: leaf_spine\n"
            "  spine0\n"
            "    |  each leaf to 1 spines, 4 GB/s a link\n"
            "  leaf0 to leaf1\n"
            "    |  all NICs of 2 nodes a leaf\n"
            "  node0 to node3\n"
            "figures for 16 GPUs\n"
            "  bisection              4 GB/s each way\n"
            "    of its NICs          50.0 %\n"
            "  longest path           4 links\n"
            "  links, leaf-spine      2\n"
            "  links, nic             16\n"
            "  links, nvlink          16\n");
}

TEST(TopologyText, NamesWhatIsOverridden) {
  System system = with_down(leaf_spine(2, 2, 4e9), "leaf0-spine1");
  system.gpu_overrides.push_back({.node = 0, .gpu = 3, .speed = 0.8});
  const std::string text = topology_text(system, Topology::build(system, 16));
  EXPECT_NE(text.find("  leaf0-spine1           down\n"), text.npos) << text;
  EXPECT_NE(text.find("  node0.gpu3             at 80.0 % of its speed\n"), text.npos) << text;
  EXPECT_NE(text.find("  bisection              4 GB/s each way\n"), text.npos) << text;
}

// Every node and switch of the graph is declared or is one of the nodes shown as boxes, and every
// cable is an edge: 4 GPUs to the switch and 4 to their NICs, 4 NICs of node 0, 3 nodes, 2 wires.
TEST(TopologyDot, HasEveryCableOnce) {
  const System system = leaf_spine(2, 1, 4e9);
  const std::string dot = topology_dot(system, Topology::build(system, 16));
  int edges = 0;
  for (std::size_t at = dot.find(" -- "); at != dot.npos; at = dot.find(" -- ", at + 1)) ++edges;
  EXPECT_EQ(edges, 4 + 4 + 4 + 3 + 2);
  EXPECT_TRUE(dot.starts_with("// orrery\ngraph \"four-by-four\" {\n"));
  EXPECT_TRUE(dot.ends_with("}\n"));
  EXPECT_NE(dot.find("  \"leaf0\" -- \"spine0\" [label=\"4 GB/s\"];\n"), dot.npos) << dot;
  EXPECT_NE(dot.find("  \"node2\" -- \"leaf1\" [label=\"4 NICs\"];\n"), dot.npos) << dot;
}

TEST(TopologyDot, DrawsPairsAndTrees) {
  const System system = read_system("dgx-1-v100-cube-mesh", {"test", ""});
  const std::string dot = topology_dot(system, Topology::build(system, 8));
  EXPECT_NE(dot.find("\"node0.gpu0\" -- \"node0.gpu3\" [label=\"50 GB/s\"]"), dot.npos) << dot;
  EXPECT_NE(dot.find("\"node0.switch0\" -- \"node0.cpu0\" [label=\"16 GB/s\"]"), dot.npos);
  EXPECT_NE(dot.find("\"node0.cpu0\" -- \"node0.cpu1\" [label=\"38.4 GB/s\"]"), dot.npos);
  EXPECT_NE(dot.find("\"node0.gpu5\" -- \"node0.switch2\" [label=\"16 GB/s\"]"), dot.npos);
}

}  // namespace
}  // namespace orrery::topology_text_test
