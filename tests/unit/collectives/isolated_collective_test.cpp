#include "sim/collectives/isolated_collective.hpp"

#include <gtest/gtest.h>

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
        const auto [cost, time, flows, simulator] =
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

}  // namespace
}  // namespace orrery::isolated_collective_test
