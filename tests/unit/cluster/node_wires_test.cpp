#include <gtest/gtest.h>

#include "sim/cluster/topology.hpp"
#include "tests/support/fabrics.hpp"

namespace orrery::node_wires_test {
namespace {

using Names = std::vector<std::string>;

Names names(const Topology& topology, int from, int to) {
  Names names;
  for (const LinkId id : topology.route(Rank{from}, Rank{to})) names.push_back(topology.name(id));
  return names;
}

// DGX-1: each GPU has 6 links of 25 GB/s; a pair is reached by its own links, or through one GPU.
TEST(CubeMesh, EveryPairIsAtMostTwoLinksApart) {
  const System system = read_system("dgx-1-v100-cube-mesh", {"test", ""});
  std::vector<double> sum(8);
  for (const NvlinkPair& pair : system.nvlink_pairs)
    for (const int gpu : {pair.first, pair.second})
      sum[static_cast<std::size_t>(gpu)] += pair.bandwidth.si();
  EXPECT_EQ(sum, std::vector<double>(8, 150e9));
  const Topology topology = Topology::build(system, 8);
  for (int from = 0; from < 8; ++from)
    for (int to = 0; to < 8; ++to) {
      if (from == to) continue;
      bool neighbours = false;
      for (const NvlinkPair& pair : system.nvlink_pairs)
        neighbours = neighbours || std::minmax(from, to) == std::minmax(pair.first, pair.second);
      const std::vector<LinkId> route = topology.route(Rank{from}, Rank{to});
      EXPECT_EQ(route.size(), neighbours ? 1u : 2u) << from << " " << to;
      for (const LinkId id : route) EXPECT_EQ(topology.link(id).kind, LinkKind::nvlink_up);
    }
  EXPECT_EQ(names(topology, 0, 3), (Names{"node0.gpu0-gpu3.nvlink"}));
  EXPECT_EQ(names(topology, 3, 0), (Names{"node0.gpu3-gpu0.nvlink"}));
  EXPECT_DOUBLE_EQ(topology.link(topology.route(Rank{3}, Rank{0})[0]).capacity.si(), 50e9);
  // From 0 to 7: by 3 (50 and 25 GB/s) or by 4 (50 and 50), which is the wider way.
  EXPECT_EQ(names(topology, 0, 7), (Names{"node0.gpu0-gpu4.nvlink", "node0.gpu4-gpu7.nvlink"}));
}

// GPU 5 is behind switch2, with NIC 2.
TEST(CubeMesh, TheNicIsBehindThePcieSwitch) {
  const Topology topology = Topology::build(read_system("dgx-1-v100-cube-mesh", {"test", ""}), 16);
  EXPECT_EQ(names(topology, 5, 14), (Names{"node0.gpu5.pcie.up", "node0.nic2.up", "node1.nic3.down",
                                           "node1.gpu6.pcie.down"}));
  EXPECT_DOUBLE_EQ(topology.latency(Rank{5}, Rank{14}).si(), 5e-6);
}

// A dead double link: two links round it, by the widest way. 1 -> 0 (25) and 0 -> 4... for 0 -> 3:
// by 1 or 2: 25 + 25, 25 + 50: through 2.
TEST(CubeMesh, ADeadLinkIsGoneRound) {
  const System system =
      with_down(read_system("dgx-1-v100-cube-mesh", {"test", ""}), "node1.gpu0-gpu3.nvlink");
  const Topology topology = Topology::build(system, 16);
  EXPECT_EQ(names(topology, 0, 3), (Names{"node0.gpu0-gpu3.nvlink"}));
  EXPECT_EQ(names(topology, 8, 11), (Names{"node1.gpu0-gpu2.nvlink", "node1.gpu2-gpu3.nvlink"}));
}

TEST(Bridges, NvlinkInPairsAndPcieElsewhere) {
  const Topology topology =
      Topology::build(read_system("a100-pcie-nvlink-bridge", {"test", ""}), 16);
  EXPECT_EQ(names(topology, 0, 1), (Names{"node0.gpu0-gpu1.nvlink"}));
  // Other pair, same socket: up to the root complex and down.
  EXPECT_EQ(names(topology, 0, 2), (Names{"node0.gpu0.pcie.up", "node0.switch0.up",
                                          "node0.switch1.down", "node0.gpu2.pcie.down"}));
  // Other socket.
  EXPECT_EQ(names(topology, 0, 4),
            (Names{"node0.gpu0.pcie.up", "node0.switch0.up", "node0.cpu0-cpu1",
                   "node0.switch2.down", "node0.gpu4.pcie.down"}));
  EXPECT_EQ(names(topology, 6, 8), (Names{"node0.gpu6.pcie.up", "node0.nic3.up", "node1.nic0.down",
                                          "node1.gpu0.pcie.down"}));
}

TEST(Bridges, ADeadBridgeIsReplacedByThePcieSwitch) {
  const Topology topology = Topology::build(
      with_down(read_system("a100-pcie-nvlink-bridge", {"test", ""}), "node0.gpu0-gpu1.nvlink"), 8);
  EXPECT_EQ(names(topology, 0, 1), (Names{"node0.gpu0.pcie.up", "node0.gpu1.pcie.down"}));
}

// NIC 0 down: the nearest other one is NIC 1, behind the root complex of the same socket.
TEST(Bridges, WithoutItsNicAGpuGoesThroughTheCpu) {
  const Topology topology = Topology::build(
      with_down(read_system("a100-pcie-nvlink-bridge", {"test", ""}), "node0.nic0"), 16);
  EXPECT_EQ(names(topology, 0, 8),
            (Names{"node0.gpu0.pcie.up", "node0.switch0.up", "node0.switch1.down", "node0.nic1.up",
                   "node1.nic0.down", "node1.gpu0.pcie.down"}));
}

// With NVLink to a GPU at another NIC (PXN), that comes before the CPU. Four GPUs on an NVSwitch,
// a PCIe switch each two, NICs alike.
TEST(PcieTree, NvlinkToAnotherNicComesBeforeTheCpu) {
  System system = fabric_system(FabricLayout::single_switch);
  system.nics_per_node = 2;
  system.pcie_tree.branches = {
      {"cpu0", -1, {}}, {"switch0", 0, BytesPerSecond{8e9}}, {"switch1", 0, BytesPerSecond{8e9}}};
  system.pcie_tree.gpus = {1, 1, 2, 2};
  system.pcie_tree.nics = {1, 2};
  const Topology whole = Topology::build(system, 8);
  EXPECT_EQ(names(whole, 0, 1), (Names{"node0.gpu0.nvlink.up", "node0.gpu1.nvlink.down"}));
  EXPECT_EQ(names(whole, 1, 4), (Names{"node0.gpu1.pcie.up", "node0.nic0.up", "node1.nic0.down",
                                       "node1.gpu0.pcie.down"}));
  const Topology broken = Topology::build(with_down(system, "node0.nic0"), 8);
  EXPECT_EQ(names(broken, 1, 4),
            (Names{"node0.gpu1.nvlink.up", "node0.gpu2.nvlink.down", "node0.gpu2.pcie.up",
                   "node0.nic1.up", "node1.nic0.down", "node1.gpu0.pcie.down"}));
  // What comes in by NIC 1 goes through the CPU, not through another GPU.
  EXPECT_EQ(names(broken, 4, 1),
            (Names{"node1.gpu0.pcie.up", "node1.nic0.up", "node0.nic1.down", "node0.switch1.up",
                   "node0.switch0.down", "node0.gpu1.pcie.down"}));
  // Without NVLink inside the node: PCIe, by the shared switch or by the CPU.
  const Topology cut = Topology::build(with_down(system, "node0.gpu1.nvlink"), 8);
  EXPECT_EQ(names(cut, 1, 0), (Names{"node0.gpu1.pcie.up", "node0.gpu0.pcie.down"}));
  EXPECT_EQ(names(cut, 1, 3), (Names{"node0.gpu1.pcie.up", "node0.switch0.up", "node0.switch1.down",
                                     "node0.gpu3.pcie.down"}));
}

}  // namespace
}  // namespace orrery::node_wires_test
