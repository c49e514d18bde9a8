#include "sim/collectives/isolated_collective.hpp"

#include <gtest/gtest.h>

#include "sim/collectives/collective_text.hpp"

namespace orrery::isolated_collective_test {
namespace {

const Place test_place{"test", ""};

struct Case {
  const char* system;
  int ranks, nodes;
};

// A collective alone on its links takes the calculated time; the simulation goes through SimGrid.
TEST(IsolatedCollective, SimulationAndPriceAgree) {
  for (const Case& one : {Case{"four-by-four", 4, 1},
                          {"four-by-four", 16, 4},
                          {"dgx-h100", 8, 1},
                          {"dgx-h100", 2, 2},
                          {"dgx-h100", 32, 4},
                          {"aws-p5", 16, 2},
                          {"dgx-a100-80gb", 8, 2},
                          {"gb200-nvl72", 72, 18},
                          {"l40s-pcie", 8, 1}})
    for (const auto& [kind, name, nccl_name, passes, reduces, rooted] : collective_facts)
      for (double bytes : {8.0, 1e6, 1e9}) {
        const IsolatedCollective collective{kind, one.ranks, one.nodes, Bytes{bytes}};
        const auto [cost, time, flows, simulator, least] =
            run_alone(collective, read_system(one.system, test_place));
        EXPECT_EQ(simulator, Simulator::own);
        EXPECT_NEAR(time.si(), cost.time().si(), 1e-3 * cost.time().si())
            << one.system << " " << one.ranks << " " << name << " " << bytes;
        EXPECT_LE(flows, 4);
      }
}

TEST(IsolatedCollective, NothingTakesNoTime) {
  const System system = read_system("dgx-h100", test_place);
  const IsolatedCollective no_bytes{CollectiveKind::all_reduce, 8, 1, Bytes{}};
  const IsolatedCollective one_rank{CollectiveKind::all_to_all, 1, 1, Bytes{1e9}};
  for (const IsolatedCollective& nothing : {no_bytes, one_rank}) {
    const IsolatedCollectiveTime result = run_alone(nothing, system);
    EXPECT_EQ(result.time, Seconds{});
    EXPECT_EQ(result.bus_bandwidth(nothing), BytesPerSecond{});
  }
}

// 1.2e9 bytes on four ports of 10 GB/s: 6 us and 1.5 x 1.2e9 / 10e9 = 0.18 s.
TEST(IsolatedCollective, Bandwidths) {
  const IsolatedCollective collective{CollectiveKind::all_reduce, 4, 1, Bytes{1.2e9}};
  const auto result = run_alone(collective, read_system("four-by-four", test_place));
  EXPECT_NEAR(result.time.si(), 0.180006, 1e-8);
  EXPECT_NEAR(result.algorithm_bandwidth(collective).si(), 1.2e9 / 0.180006, 1e3);
  EXPECT_NEAR(result.bus_bandwidth(collective).si(), 1.8e9 / 0.180006, 1e3);
}

IsolatedCollectiveTime alone(const char* system, CollectiveKind kind, int ranks, int nodes,
                             double bytes) {
  return run_alone({kind, ranks, nodes, Bytes{bytes}}, read_system(system, test_place));
}

constexpr double gib = 1024.0 * 1024 * 1024;

// Between two nodes a tree sends each member's share, S/8, once in each direction; a ring would
// send 30/16 of it. (AWS p4d: four NICs of 12.5 GB/s at 86 % for eight GPUs; its log has 26.2 ms.)
TEST(IsolatedCollective, TwoNodesTakeTreesWhereNcclDoes) {
  const auto tree = alone("aws-p4d", CollectiveKind::all_reduce, 16, 2, gib);
  EXPECT_EQ(tree.cost.algorithm, "tree");
  EXPECT_NEAR(tree.time.si(), gib / 8 / (0.86 * 6.25e9), 0.06 * tree.time.si());
  EXPECT_NEAR(tree.time.si(), 26.217e-3, 1e-6);
  const auto ring = alone("dgx-a100-80gb", CollectiveKind::all_reduce, 16, 2, gib);
  EXPECT_EQ(ring.cost.algorithm, "ring");
  EXPECT_NEAR(ring.time.si(), 30.0 / 16 * gib / 8 / (0.97 * 25e9), 0.03 * ring.time.si());
}

// An all-to-all of two nodes sends half of its bytes out, an eighth of them by each NIC of 50 GB/s:
// no range begins below that.
TEST(IsolatedCollective, NothingIsFasterThanTheWire) {
  const auto pairs = alone("aws-p6-b200", CollectiveKind::all_to_all, 16, 2, 8 * gib);
  EXPECT_NEAR(pairs.least.si(), 8 * gib / 2 / 50e9, 1e-9);
  EXPECT_GT(pairs.time, pairs.least);
  const CollectiveLine line{{CollectiveKind::all_to_all, 16, 2, Bytes{8 * gib}}, pairs, 0.2};
  EXPECT_EQ(line.low(), pairs.least);
}

// A GPU that shares its NIC with an idle one has all of it (NVIDIA/nccl issue 1357): here four NICs
// of 25 GB/s at 95 % for eight GPUs.
TEST(IsolatedCollective, ANicIsSharedOnlyWhileBothUseIt) {
  const auto one = alone("hgx-a800-roce", CollectiveKind::send_recv, 2, 2, 8 * gib);
  EXPECT_NEAR(one.time.si(), 8 * gib / (0.95 * 25e9), 0.001 * one.time.si());
  // GPUs 0 and 1 of each node send 3/4 of what four ranks gather over the NIC that they share. Each
  // copies its own quarter before.
  const auto two = alone("hgx-a800-roce", CollectiveKind::all_gather, 4, 2, 8 * gib);
  const double copy = 8 * gib / 4 / (2.44 * 0.8 * 200e9);
  EXPECT_NEAR(two.time.si(), copy + 0.75 * 8 * gib / (0.95 * 25e9), 0.001 * two.time.si());
}

// Jobs fill the racks of 72 evenly: 256 and 512 ranks lie on 4 and 8 of them, 64 on each, so that a
// rank sends its part of a ring, 255/256/64 and 511/512/64 of the data, over its NIC.
TEST(IsolatedCollective, RacksAreFilledEvenly) {
  for (const int racks : {4, 8}) {
    const int ranks = 64 * racks;
    for (const char* system : {"gb200-nvl72", "gb300-nvl72"}) {
      const auto result = alone(system, CollectiveKind::all_gather, ranks, ranks / 4, 8 * gib);
      EXPECT_DOUBLE_EQ(result.cost.network_bytes.si(), (ranks - 1.0) / ranks / 64 * 8 * gib);
    }
  }
  EXPECT_LE(alone("gb200-nvl72", CollectiveKind::all_to_all, 128, 32, 1024 * 1024).flows, 2);
}

// Twenty racks, as nccl-tests measured them (tests/validation/collectives/gb200-nvl72.json).
TEST(IsolatedCollective, RacksOfGb200TakeWhatTwentyOfThemTook) {
  EXPECT_NEAR(alone("gb200-nvl72", CollectiveKind::all_reduce, 1440, 360, 0.5 * gib).time.si(),
              7108.4e-6, 0.02 * 7108.4e-6);
  EXPECT_NEAR(alone("gb200-nvl72", CollectiveKind::all_reduce, 1440, 360, 16 * gib).time.si(),
              84625e-6, 0.02 * 84625e-6);
}

// NVLink SHARP on boards with fewer links: published all-reduces of 8 H800 (NVIDIA/nccl issue 1374:
// 215 GB/s of bus bandwidth) and H20, whose ports are those of an H100 (480 GB/s).
TEST(IsolatedCollective, BoardsWithNvlinkSharp) {
  const IsolatedCollective whole{CollectiveKind::all_reduce, 8, 1, Bytes{8 * gib}};
  const auto h800 = run_alone(whole, read_system("hgx-h800", test_place));
  EXPECT_EQ(h800.cost.algorithm, "NVLS");
  EXPECT_NEAR(h800.bus_bandwidth(whole).si(), 215e9, 0.03 * 215e9);
  const auto h20 = run_alone(whole, read_system("hgx-h20", test_place));
  EXPECT_EQ(h20.cost.algorithm, "NVLS");
  EXPECT_NEAR(h20.bus_bandwidth(whole).si(), 480e9, 0.02 * 480e9);
  CollectiveOptions trees;
  trees.selection = parse_nccl_selection("NVLSTree", "");
  const IsolatedCollective two{CollectiveKind::all_reduce, 16, 2, Bytes{8 * gib}};
  EXPECT_EQ(run_alone(two, read_system("hgx-h20", test_place), trees).cost.algorithm, "NVLS-tree");
}

// Two bridged cards all-reduce over their NVLinks (published: 208 GB/s, NVIDIA/nccl-tests issue
// 178); three and more over PCIe.
TEST(IsolatedCollective, BridgedPairsUseTheirNvlinks) {
  const System system = read_system("a100-pcie-nvlink-bridge", test_place);
  const auto bus = [&](int ranks) {
    const IsolatedCollective one{CollectiveKind::all_reduce, ranks, 1, Bytes{4 * gib}};
    return run_alone(one, system).bus_bandwidth(one).si();
  };
  EXPECT_NEAR(bus(2), 208e9, 0.12 * 208e9);
  for (const int ranks : {3, 4, 8}) EXPECT_LT(bus(ranks), 32e9);
}

}  // namespace
}  // namespace orrery::isolated_collective_test
