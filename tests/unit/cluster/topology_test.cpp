#include "sim/cluster/topology.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace orrery::topology_test {
namespace {

const Place nowhere{"test", ""};

System catalog_system(const std::string& name) { return read_system(name, nowhere); }

std::vector<std::string> names(const Topology& topology, int from, int to) {
  std::vector<std::string> names;
  for (const LinkId id : topology.route(Rank{from}, Rank{to})) names.push_back(topology.name(id));
  return names;
}

std::string node(int rank, int gpus_per_node) {
  return "node" + std::to_string(rank / gpus_per_node);
}

// Four nodes of four GPUs, a NIC each:
//   inside a node   from.nvlink.up, to.nvlink.down
//   between nodes   from's nic.up, to's nic.down
TEST(Topology, AllPairsOfFourByFour) {
  const Topology topology = Topology::build(catalog_system("four-by-four"), 16);
  for (int from = 0; from < 16; ++from)
    for (int to = 0; to < 16; ++to) {
      SCOPED_TRACE(std::to_string(from) + " -> " + std::to_string(to));
      const bool inside = from / 4 == to / 4;
      const auto end = [&](int rank, const std::string& direction) {
        const std::string local = std::to_string(rank % 4);
        return node(rank, 4) + (inside ? ".gpu" + local + ".nvlink." : ".nic" + local + ".") +
               direction;
      };
      const std::vector<std::string> expected =
          from == to ? std::vector<std::string>{}
                     : std::vector<std::string>{end(from, "up"), end(to, "down")};
      EXPECT_EQ(names(topology, from, to), expected);
      EXPECT_EQ(topology.same_domain(Rank{from}, Rank{to}), inside);

      for (const LinkId id : topology.route(Rank{from}, Rank{to})) {
        const Link& link = topology.link(id);
        // 10 GB/s up to the switch; the NIC has 1 GB/s x efficiency 1.
        EXPECT_DOUBLE_EQ(link.capacity.si(), inside ? 10e9 : 1e9);
        EXPECT_EQ(link.is_nic(), !inside);
        const bool up = link.kind == LinkKind::nvlink_up || link.kind == LinkKind::nic_up;
        EXPECT_EQ(link.node, (up ? from : to) / 4);
        EXPECT_EQ(link.owner, (up ? from : to) % 4);
      }
      // 1 us over NVLink, 10 us over the network.
      EXPECT_DOUBLE_EQ(topology.latency(Rank{from}, Rank{to}).si(), from == to ? 0.0
                                                                    : inside   ? 1e-6
                                                                               : 10e-6);
      EXPECT_EQ(topology.latency(Rank{from}, Rank{to}), topology.latency(Rank{to}, Rank{from}));
    }
  // Each of 16 GPUs has an up and a down NVLink and an up and a down NIC.
  EXPECT_EQ(topology.link_count(), 16 * 4);
}

TEST(Topology, TheWayBackIsTheMirrorImage) {
  const auto mirrored = [](std::string name) {
    const std::size_t dot = name.rfind('.');
    return name.substr(0, dot) + (name.substr(dot) == ".up" ? ".down" : ".up");
  };
  for (const char* system : {"four-by-four", "dgx-1-v100", "aws-p5", "l40s-pcie"}) {
    const Topology topology = Topology::build(catalog_system(system), 16);
    for (int from = 0; from < 16; ++from)
      for (int to = 0; to < 16; ++to) {
        std::vector<std::string> back = names(topology, to, from);
        std::vector<std::string> reversed;
        for (auto name = back.rbegin(); name != back.rend(); ++name)
          reversed.push_back(mirrored(*name));
        EXPECT_EQ(names(topology, from, to), reversed) << system << " " << from << " " << to;
      }
  }
}

// DGX-1: 4 NICs for 8 GPUs, so GPU i uses NIC i * 4 / 8 and shares it with its neighbour. A NIC is
// no way between the two: they stay on NVLink.
TEST(Topology, GpusShareNics) {
  const Topology topology = Topology::build(catalog_system("dgx-1-v100"), 16);
  for (int from = 0; from < 8; ++from)
    for (int to = 8; to < 16; ++to)
      EXPECT_EQ(names(topology, from, to),
                (std::vector<std::string>{"node0.nic" + std::to_string(from / 2) + ".up",
                                          "node1.nic" + std::to_string((to - 8) / 2) + ".down"}));
  EXPECT_EQ(topology.route(Rank{0}, Rank{8}), topology.route(Rank{1}, Rank{9}));
  EXPECT_NE(topology.route(Rank{0}, Rank{8}), topology.route(Rank{2}, Rank{9}));
  EXPECT_EQ(names(topology, 0, 1),
            (std::vector<std::string>{"node0.gpu0.nvlink.up", "node0.gpu1.nvlink.down"}));
  // 100 Gb/s = 12.5 GB/s, of which 0.97 is payload.
  EXPECT_DOUBLE_EQ(topology.link(topology.route(Rank{0}, Rank{8})[0]).capacity.si(), 0.97 * 12.5e9);
}

// p5: 32 NICs of 100 Gb/s for 8 GPUs: four a GPU, together 4 x 12.5 GB/s x 0.86.
TEST(Topology, NicsOfOneGpuCountAsOne) {
  const Topology topology = Topology::build(catalog_system("aws-p5"), 16);
  EXPECT_EQ(names(topology, 3, 15),
            (std::vector<std::string>{"node0.nic3x4.up", "node1.nic7x4.down"}));
  EXPECT_DOUBLE_EQ(topology.link(topology.route(Rank{3}, Rank{15})[0]).capacity.si(),
                   4 * 12.5e9 * 0.86);
}

// PCIe nodes: one slot a GPU for both kinds of traffic.
TEST(Topology, PcieTrafficSharesTheSlot) {
  const System system = catalog_system("l40s-pcie");
  const Topology topology = Topology::build(system, 16);
  EXPECT_EQ(names(topology, 2, 5),
            (std::vector<std::string>{"node0.gpu2.pcie.up", "node0.gpu5.pcie.down"}));
  EXPECT_EQ(names(topology, 2, 13),
            (std::vector<std::string>{"node0.gpu2.pcie.up", "node0.nic2.up", "node1.nic5.down",
                                      "node1.gpu5.pcie.down"}));
  EXPECT_EQ(topology.route(Rank{2}, Rank{5})[0], topology.route(Rank{2}, Rank{13})[0]);
  EXPECT_EQ(topology.link(topology.route(Rank{2}, Rank{5})[0]).capacity, system.scale_up);
  // 1 us through the node; 6.7 us through the network and half a microsecond at each end.
  EXPECT_DOUBLE_EQ(topology.latency(Rank{2}, Rank{5}).si(), 1e-6);
  EXPECT_DOUBLE_EQ(topology.latency(Rank{2}, Rank{13}).si(), 7.7e-6);
}

// Every wiring of up to 6 GPUs and 12 NICs: the way has the right ends whatever is shared.
TEST(Topology, EverySmallNodeRoutesOverItsOwnNic) {
  System system = catalog_system("four-by-four");
  for (const NodeWiring wiring : {NodeWiring::nvswitch, NodeWiring::nvlink_mesh, NodeWiring::pcie})
    for (int gpus = 1; gpus <= 6; ++gpus)
      for (int nics = 1; nics <= 12; ++nics) {
        if (gpus % nics != 0 && nics % gpus != 0) continue;
        SCOPED_TRACE(std::to_string(gpus) + " GPUs, " + std::to_string(nics) + " NICs");
        system.wiring = wiring;
        system.gpus_per_node = system.nvlink_domain = gpus;
        system.nics_per_node = nics;
        const Topology topology = Topology::build(system, 2 * gpus);
        const std::size_t hops = wiring == NodeWiring::pcie ? 4 : 2;
        for (int from = 0; from < gpus; ++from)
          for (int to = gpus; to < 2 * gpus; ++to) {
            const std::vector<LinkId> route = topology.route(Rank{from}, Rank{to});
            ASSERT_EQ(route.size(), hops);
            const Link& up = topology.link(route[hops / 2 - 1]);
            const Link& down = topology.link(route[hops / 2]);
            EXPECT_EQ(up.kind, LinkKind::nic_up);
            EXPECT_EQ(down.kind, LinkKind::nic_down);
            // With more NICs than GPUs a NIC link is the GPU's own, else the share of its index.
            EXPECT_EQ(up.owner, nics >= gpus ? from : from * nics / gpus);
            EXPECT_EQ(down.owner, nics >= gpus ? to - gpus : (to - gpus) * nics / gpus);
            EXPECT_DOUBLE_EQ(up.capacity.si(), nics >= gpus ? nics / gpus * 1e9 : 1e9);
          }
      }
}

// NVL72: nodes 0 and 17 share one NVLink domain; rank 72 begins the next rack.
TEST(Topology, ARackRoutesOverNvlink) {
  const Topology topology = Topology::build(catalog_system("gb200-nvl72"), 144);
  EXPECT_EQ(names(topology, 0, 71),
            (std::vector<std::string>{"node0.gpu0.nvlink.up", "node17.gpu3.nvlink.down"}));
  EXPECT_EQ(names(topology, 71, 72),
            (std::vector<std::string>{"node17.nic3.up", "node18.nic0.down"}));
  EXPECT_EQ(names(topology, 73, 143),
            (std::vector<std::string>{"node18.gpu1.nvlink.up", "node35.gpu3.nvlink.down"}));
  EXPECT_EQ(topology.node(Rank{71}), 17);
}

TEST(Topology, IdsCountUpInTheOrderOfFirstUse) {
  const Topology topology = Topology::build(catalog_system("four-by-four"), 16);
  EXPECT_EQ(topology.link_count(), 0);
  EXPECT_EQ(topology.route(Rank{5}, Rank{6}), (std::vector<LinkId>{LinkId{0}, LinkId{1}}));
  EXPECT_EQ(topology.route(Rank{5}, Rank{7}), (std::vector<LinkId>{LinkId{0}, LinkId{2}}));
  EXPECT_EQ(topology.route(Rank{5}, Rank{6}), (std::vector<LinkId>{LinkId{0}, LinkId{1}}));
  const Link& first = topology.link(LinkId{0});
  for (int rank = 8; rank < 16; ++rank) topology.route(Rank{0}, Rank{rank});
  EXPECT_EQ(first.node, 1);  // The reference outlives new links.
  EXPECT_EQ(topology.name(LinkId{0}), "node1.gpu1.nvlink.up");
}

// The size of the cluster costs nothing: only links that are asked for exist.
TEST(Topology, A131072GpuClusterIsAsCheapAsItsRoutes) {
  const auto start = std::chrono::steady_clock::now();
  const Topology topology = Topology::build(catalog_system("dgx-h100"), 131072);
  EXPECT_EQ(topology.gpus(), 131072);
  EXPECT_EQ(names(topology, 0, 131071),
            (std::vector<std::string>{"node0.nic0.up", "node16383.nic7.down"}));
  EXPECT_EQ(topology.link_count(), 2);
  // Twenty thousand further routes touch one NIC up and 20,000 NICs down.
  for (int rank = 8; rank < 20008; ++rank) topology.route(Rank{0}, Rank{rank});
  EXPECT_EQ(topology.link_count(), 2 + 20000);
  // Milliseconds in truth; the bound is for machines that do other things.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds{2});
}

}  // namespace
}  // namespace orrery::topology_test
