#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <map>
#include <set>

#include "sim/cluster/fabric_plan.hpp"
#include "sim/cluster/fabric_routes.hpp"
#include "sim/cluster/topology.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/fabrics.hpp"

namespace orrery::fabric_topology_test {
namespace {

using Names = std::vector<std::string>;

Names names(const Topology& topology, int from, int to, int channel = 0) {
  Names names;
  for (const LinkId id : topology.route(Rank{from}, Rank{to}, channel))
    names.push_back(topology.name(id));
  return names;
}

struct Case {
  std::string name;
  System system;
  int nodes;
};

std::vector<Case> every_layout() {
  return {{"single", fabric_system(FabricLayout::single_switch), 4},
          {"leaf-spine", leaf_spine(2, 3, 4e9), 7},
          {"one leaf", leaf_spine(4, 2, 4e9), 3},
          {"rails", rail_optimized(2, 2, 1e9), 5},
          {"fat tree", fat_tree(1, 2, 2, 4, 2e9, 2e9), 8},
          {"fat tree, 28 cores of 10 spines", fat_tree(1, 2, 10, 28, 2e9, 2e9), 6},
          {"dragonfly", dragonfly(1, 2, 5, 2, 8e9, 8e9), 10},
          {"one group", dragonfly(1, 3, 1, 0, 8e9, 0), 3},
          {"ring", ring_of_switches(5, 4e9), 5}};
}

// Every way starts and ends at the right GPUs, each link starts where the one before it ends, and
// no way rises again after it has gone down: what enters a switch leaves it.
TEST(Fabric, AllPairsOfEveryLayoutAreConnectedEndToEnd) {
  for (const Case& c : every_layout()) {
    SCOPED_TRACE(c.name);
    const int gpus = 4 * c.nodes;
    const Topology topology = Topology::build(c.system, gpus);
    const FabricPlan& plan = topology.fabric();
    for (int from = 0; from < gpus; ++from)
      for (int to = 0; to < gpus; ++to) {
        SCOPED_TRACE(std::to_string(from) + " -> " + std::to_string(to));
        const std::vector<LinkId> route = topology.route(Rank{from}, Rank{to});
        if (from / 4 == to / 4) {
          EXPECT_EQ(route.size(), from == to ? 0u : 2u);
          continue;
        }
        std::string at;  // The switch that the way has come to.
        int highest = 0, level = 0;
        bool fell = false;
        for (const LinkId id : route) {
          const Link& link = topology.link(id);
          if (link.kind == LinkKind::nic_up) {
            EXPECT_EQ(link.node, from / 4);
            at = plan.name(plan.switch_of(link.node, link.owner));
          } else if (link.kind == LinkKind::nic_down) {
            EXPECT_EQ(link.node, to / 4);
            EXPECT_EQ(link.owner, to % 4);
            EXPECT_EQ(at, plan.name(plan.switch_of(link.node, link.owner)));
            at = "end";
          } else if (link.node == -1) {
            const std::string name = topology.name(id);
            const std::size_t dash = name.find('-');
            EXPECT_EQ(name.substr(0, dash), at);
            at = name.substr(dash + 1);
            const bool up = link.kind == LinkKind::leaf_up || link.kind == LinkKind::spine_up;
            const bool down = link.kind == LinkKind::leaf_down || link.kind == LinkKind::spine_down;
            EXPECT_FALSE(up && fell);
            fell = fell || down;
            level += up - down;
            highest = std::max(highest, level);
          } else {  // PXN: NVLink before the NIC.
            EXPECT_TRUE(at.empty());
            EXPECT_EQ(link.node, from / 4);
          }
        }
        EXPECT_EQ(at, "end");
        EXPECT_EQ(level, 0);
        EXPECT_LE(highest, c.system.shape.layout == FabricLayout::fat_tree ? 2 : 1);
      }
  }
}

// Two nodes a leaf: 10 us NIC to NIC on one leaf, and 2 us more for the spine and the other leaf.
TEST(Fabric, EachSwitchAfterTheFirstAddsItsLatency) {
  const Topology topology = Topology::build(leaf_spine(2, 1, 4e9), 16);
  EXPECT_EQ(names(topology, 0, 5), (Names{"node0.nic0.up", "node1.nic1.down"}));
  EXPECT_DOUBLE_EQ(topology.latency(Rank{0}, Rank{5}).si(), 10e-6);
  EXPECT_EQ(names(topology, 0, 9),
            (Names{"node0.nic0.up", "leaf0-spine0", "spine0-leaf1", "node2.nic1.down"}));
  EXPECT_DOUBLE_EQ(topology.latency(Rank{0}, Rank{9}).si(), 12e-6);
  const Link& up = topology.link(topology.route(Rank{0}, Rank{9})[1]);
  EXPECT_EQ(up.kind, LinkKind::leaf_up);
  EXPECT_DOUBLE_EQ(up.capacity.si(), 4e9);
  EXPECT_EQ(up.node, -1);
}

// All flows from node 0 to node 2, sixteen channels of each: the spine of each is the hash's own.
TEST(Ecmp, SpreadsAsTheHashSays) {
  System system = leaf_spine(2, 4, 4e9);
  std::map<std::uint64_t, std::vector<int>> counts;
  for (const std::uint64_t seed : {0, 1}) {
    system.shape.ecmp_seed = seed;
    const Topology topology = Topology::build(system, 16);
    std::vector<int> expected(4), found(4);
    for (int from = 0; from < 4; ++from)
      for (int to = 8; to < 12; ++to)
        for (int channel = 0; channel < 16; ++channel) {
          ++expected[static_cast<std::size_t>(
              ecmp_choice({seed, Rank{from}, Rank{to}, channel}, 0, 4))];
          const std::string link = names(topology, from, to, channel)[1];
          ++found[static_cast<std::size_t>(link.back() - '0')];
        }
    EXPECT_EQ(found, expected);
    for (const int count : found) {
      EXPECT_GT(count, 32);  // Of 256, evenly 64: four standard deviations of 7 below and above.
      EXPECT_LT(count, 96);
    }
    counts[seed] = found;
  }
  EXPECT_NE(counts[0], counts[1]);
}

TEST(Ecmp, SameQuestionSameAnswer) {
  const System system = fat_tree(1, 2, 2, 4, 2e9, 2e9);
  const Topology first = Topology::build(system, 32);
  const Topology second = Topology::build(system, 32);
  for (int to = 31; to >= 0; --to) names(second, 3, to);  // Asked for in another order.
  for (int to = 0; to < 32; ++to) EXPECT_EQ(names(first, 0, to), names(second, 0, to));
}

// Pods of two nodes. Same rail and pod: one leaf. Other pod: one spine. Other rail: NVLink to the
// GPU on the receiver's rail, then as on one rail; never a spine inside a pod.
TEST(Rails, WaysStayOnTheReceiversRail) {
  const Topology topology = Topology::build(rail_optimized(2, 2, 1e9), 16);
  EXPECT_EQ(names(topology, 1, 5), (Names{"node0.nic1.up", "node1.nic1.down"}));
  EXPECT_EQ(names(topology, 1, 6), (Names{"node0.gpu1.nvlink.up", "node0.gpu2.nvlink.down",
                                          "node0.nic2.up", "node1.nic2.down"}));
  for (int from = 0; from < 4; ++from)
    for (int to = 4; to < 16; ++to) {
      int spines = 0;
      for (const std::string& name : names(topology, from, to))
        spines += name.find("-spine") != name.npos;
      EXPECT_EQ(spines, to < 8 ? 0 : 1) << from << " " << to;
    }
  // Rail 1 of pod 0 is leaf 1, of pod 1 leaf 4 + 1.
  const Names far = names(topology, 1, 9);
  EXPECT_TRUE(far[1].starts_with("leaf1-spine")) << far[1];
  EXPECT_TRUE(far[2].ends_with("-leaf5")) << far[2];
}

TEST(Rails, WithoutNvlinkAWayCrossesTheSpines) {
  System system = rail_optimized(2, 1, 1e9);
  system.wiring = NodeWiring::pcie;
  const Topology topology = Topology::build(system, 16);
  EXPECT_EQ(names(topology, 1, 6),
            (Names{"node0.gpu1.pcie.up", "node0.nic1.up", "leaf1-spine0", "spine0-leaf2",
                   "node1.nic2.down", "node1.gpu2.pcie.down"}));
}

TEST(Overrides, WaysAvoidALinkThatIsDown) {
  const System system = with_down(leaf_spine(1, 2, 4e9), "leaf1-spine0");
  const Topology topology = Topology::build(system, 12);
  std::set<std::string> used;
  for (int channel = 0; channel < 32; ++channel) {
    EXPECT_EQ(names(topology, 0, 4, channel)[1], "leaf0-spine1");
    EXPECT_EQ(names(topology, 4, 0, channel)[1], "leaf1-spine1");
    used.insert(names(topology, 0, 8, channel)[1]);  // Leaf 2 is not concerned.
  }
  EXPECT_EQ(used, (std::set<std::string>{"leaf0-spine0", "leaf0-spine1"}));
}

// GPU 0 lost its NIC and sends by that of GPU 1, over NVLink; what comes for it goes the same way.
TEST(Overrides, AGpuWithoutItsNicUsesItsNeighbours) {
  const System system = with_down(fabric_system(FabricLayout::single_switch), "node1.nic0");
  const Topology topology = Topology::build(system, 12);
  EXPECT_EQ(names(topology, 4, 8), (Names{"node1.gpu0.nvlink.up", "node1.gpu1.nvlink.down",
                                          "node1.nic1.up", "node2.nic0.down"}));
  EXPECT_EQ(names(topology, 8, 4), (Names{"node2.nic0.up", "node1.nic1.down",
                                          "node1.gpu1.nvlink.up", "node1.gpu0.nvlink.down"}));
  EXPECT_EQ(names(topology, 5, 8), (Names{"node1.nic1.up", "node2.nic0.down"}));
  EXPECT_EQ(names(topology, 0, 8), (Names{"node0.nic0.up", "node2.nic0.down"}));
}

// Without its NVLinks a GPU reaches its own node over the network.
TEST(Overrides, TheNetworkIsTheLastWayInsideANode) {
  const System system = with_down(leaf_spine(2, 1, 4e9), "node0.gpu2.nvlink");
  const Topology topology = Topology::build(system, 8);
  EXPECT_EQ(names(topology, 2, 3), (Names{"node0.nic2.up", "node0.nic3.down"}));
  EXPECT_EQ(names(topology, 0, 1), (Names{"node0.gpu0.nvlink.up", "node0.gpu1.nvlink.down"}));
}

// Half of 1 GB/s, and only there; a slower GPU is found by its rank.
TEST(Overrides, SlowerLinksAndGpus) {
  System system = fabric_system(FabricLayout::single_switch);
  LinkOverride slow;
  slow.link = "node1.nic2";
  slow.bandwidth = BytesPerSecond{0.5e9};
  system.link_overrides.push_back(slow);
  slow.link = "node2.nic2.up";  // One direction.
  system.link_overrides.push_back(slow);
  system.gpu_overrides.push_back({.node = 1, .gpu = 3, .speed = 0.8});
  EXPECT_FALSE(system.uniform());
  const Topology topology = Topology::build(system, 12);
  const auto capacities = [&](int from, int to) {
    std::vector<double> found;
    for (const LinkId id : topology.route(Rank{from}, Rank{to}))
      found.push_back(topology.link(id).capacity.si());
    return found;
  };
  EXPECT_EQ(capacities(6, 2), (std::vector<double>{0.5e9, 1e9}));
  EXPECT_EQ(capacities(2, 6), (std::vector<double>{1e9, 0.5e9}));
  EXPECT_EQ(capacities(10, 2), (std::vector<double>{0.5e9, 1e9}));
  EXPECT_EQ(capacities(2, 10), (std::vector<double>{1e9, 1e9}));
  for (int rank = 0; rank < 12; ++rank)
    EXPECT_EQ(topology.gpu_speed(Rank{rank}), rank == 7 ? 0.8 : 1.0);
}

TEST(Overrides, AMissingRouteIsReportedWithBothEndsAndWhatIsDown) {
  System system = leaf_spine(1, 2, 4e9);
  system = with_down(with_down(system, "leaf1-spine0"), "spine1-leaf1");
  const Topology topology = Topology::build(system, 12);
  EXPECT_EQ(names(topology, 0, 8).size(), 4u);
  EXPECT_EQ(error_text([&] { topology.route(Rank{2}, Rank{5}); }),
            "system four-by-four: no way leads from node0.gpu2 to node1.gpu1 with these down: "
            "leaf1-spine0, spine1-leaf1; take one out of the overrides, or add another way");
  // Up, down and up again would lead round a broken leaf, but no switch forwards like that: leaf 0
  // has only spine 0, leaf 1 only spine 1, and leaf 2 both.
  System valley = with_down(with_down(leaf_spine(1, 2, 4e9), "leaf0-spine1"), "leaf1-spine0");
  const Topology broken = Topology::build(valley, 12);
  EXPECT_EQ(names(broken, 0, 8)[1], "leaf0-spine0");
  EXPECT_THROW(broken.route(Rank{0}, Rank{4}), Error);
}

TEST(Overrides, UnjoinedSwitchesAreNoWayEither) {
  System system = ring_of_switches(2, 4e9);
  system.shape.links.clear();
  const Topology topology = Topology::build(system, 8);
  EXPECT_EQ(error_text([&] { topology.route(Rank{0}, Rank{4}); }),
            "system four-by-four: no way leads from node0.gpu0 to node1.gpu0, though nothing is "
            "down; join the switches of their NICs");
}

// Two planes that nothing joins: NIC i of each node on switch i mod 2. PXN is the way across.
TEST(Fabric, PlanesWithoutALinkAreJoinedByNvlink) {
  System system = fabric_system(FabricLayout::explicit_links);
  system.shape.switches = {"even", "odd"};
  for (int node = 0; node < 2; ++node)
    for (int nic = 0; nic < 4; ++nic) system.shape.ports.push_back({node, nic, nic % 2});
  const Topology topology = Topology::build(system, 8);
  EXPECT_EQ(names(topology, 0, 6), (Names{"node0.nic0.up", "node1.nic2.down"}));
  EXPECT_EQ(names(topology, 0, 5), (Names{"node0.gpu0.nvlink.up", "node0.gpu1.nvlink.down",
                                          "node0.nic1.up", "node1.nic1.down"}));
}

TEST(Overrides, NamesOfNoLinkAreRefused) {
  const auto error = [](const System& system, const std::string& link) {
    return error_text([&] { Topology::build(with_down(system, link), 8); });
  };
  const System tree = leaf_spine(1, 2, 4e9);
  EXPECT_EQ(error(tree, "node0.nick0"),
            "test: /overrides: 'node0.nick0' is not a link of this system; did you mean "
            "'node0.nic0'?");
  EXPECT_EQ(error(tree, "node0.zzzzzzzzzz"),
            "test: /overrides: 'node0.zzzzzzzzzz' is not a link of this system; write it like "
            "\"node0.nic0\"");
  EXPECT_EQ(error(tree, "leaf0-spine2"),
            "test: /overrides: 'leaf0-spine2' is not a link of this system; write it like "
            "\"leaf0-spine0\"");
  EXPECT_EQ(error(fabric_system(FabricLayout::single_switch), "leaf0-spine0"),
            "test: /overrides: 'leaf0-spine0' is not a link of this system; name a NIC, as in "
            "\"node0.nic0\": this fabric is one switch");
  // Settings that only a larger run of the same system uses are no mistake.
  EXPECT_EQ(error(tree, "node9.nic0"), "no error");
  EXPECT_EQ(error(tree, "leaf9-spine1"), "no error");
}

TEST(FabricScale, CountsOfNoRealFabricAreRefusedBeforeTheyAreBuilt) {
  // 25 leaves to a million spines, both ways.
  EXPECT_EQ(error_text([] { Topology::build(leaf_spine(1, 1'000'000, 1e9), 100); }),
            "system four-by-four: its fabric has 50000000 links between switches, more than the "
            "10000000 that are simulated; check the counts of fabric_shape, or use fewer GPUs");
  // The refusal counts what would be built: 6 leaves to 10 spines, 3 pods of 10 spines to 14 cores.
  EXPECT_EQ(FabricPlan(fat_tree(1, 2, 10, 28, 2e9, 2e9), 6).wires().size(),
            2u * (6 * 10 + 3 * 10 * 14));
}

int resident_megabytes() {
  std::ifstream status{"/proc/self/status"};
  for (std::string word; status >> word;)
    if (word == "VmRSS:") {
      int kilobytes = 0;
      status >> kilobytes;
      return kilobytes / 1024;
    }
  return 0;
}

// 16,384 GPUs: 2048 nodes of 8, eight nodes a leaf, sixteen leaves a pod. Ring neighbours eight
// nodes apart, and flows across half of the cluster, so that leaves, spines and cores are all met.
TEST(FabricScale, SixteenThousandGpusInAThreeLevelFatTree) {
  System system = read_system("dgx-h100", {"test", ""});
  system.shape.layout = FabricLayout::fat_tree;
  system.shape.nodes_per_leaf = 4;
  system.shape.leaves_per_pod = 16;
  system.shape.spines = 16;
  system.shape.cores = 64;
  system.shape.uplink = BytesPerSecond{100e9};
  system.shape.core_uplink = BytesPerSecond{400e9};
  const int before = resident_megabytes();
  const auto start = std::chrono::steady_clock::now();
  const Topology topology = Topology::build(system, 16384);
  std::size_t links = 0;
  for (int rank = 0; rank < 16384; ++rank)
    links += topology.route(Rank{rank}, Rank{(rank + (rank % 2 ? 8192 : 64)) % 16384}).size();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::cout << topology.fabric().switches() << " switches, " << topology.fabric().wires().size()
            << " wires, " << links << " links on ways: " << took.count() << " s, "
            << resident_megabytes() - before << " MB\n";
  // Half the flows pass two NICs and the cores (6 links), half a pod's spine (4) or, at its edge,
  // the cores: all but 1 in 8 of 64 GPUs' steps stay in a pod of 512.
  EXPECT_EQ(links, 8192u * 6 + 8192u * 7 / 8 * 4 + 8192u / 8 * 6);
  EXPECT_LT(took.count(), 10.0);  // Generous: for machines that do other things.
  EXPECT_LT(resident_megabytes() - before, 400);
}

}  // namespace
}  // namespace orrery::fabric_topology_test
