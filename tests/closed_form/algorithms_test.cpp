// Collectives on two-level systems of round numbers: four nodes of four GPUs, NVLink 10 GB/s and
// 1 us, a NIC a GPU of 1 GB/s and 10 us, ideal constants. S = 4.8 GB throughout.
#include <gtest/gtest.h>

#include "sim/collectives/collective_flows.hpp"
#include "sim/collectives/isolated_collective.hpp"
#include "sim/engine/simulation.hpp"
#include "sim/nccl/collective_cost.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/fabrics.hpp"

namespace orrery::algorithms_test {
namespace {

constexpr double tensor = 4.8e9;

double seconds(const System& system, CollectiveKind kind, int ranks, int nodes,
               const char* algorithm = "", bool hierarchical = false) {
  const IsolatedCollective collective{kind, ranks, nodes, Bytes{tensor}, hierarchical};
  const CollectiveOptions options{parse_nccl_selection(algorithm, ""), {}, {}};
  return run_alone(collective, system, options).time.si();
}

System plain() { return fabric_system(FabricLayout::single_switch); }

// Ring: 2 x 15/16 x S / 4 = 2.25 GB out of each NIC. Tree: an inner node sends 2 S, 2.4 GB a NIC.
// Both wait 2 x 3 NVLink hops and 2 x log2(4) network hops: of a ring's 2 x 15 and a tree's the
// fewer count, for where they matter NCCL takes a tree.
TEST(Algorithms, RingAndTreeOverFourNodes) {
  EXPECT_NEAR(seconds(plain(), CollectiveKind::all_reduce, 16, 4, "Ring"), 46e-6 + 2.25, 1e-7);
  EXPECT_NEAR(seconds(plain(), CollectiveKind::all_reduce, 16, 4, "Tree"), 46e-6 + 2.4, 1e-7);
}

// Between two nodes a tree sends S/4 out of each NIC, where a ring sends 2 x 7/8 S / 4. NVLink then
// takes 2 x 3/4 S / 10 GB/s = 0.72 s, less than the 1.2 s of the NIC.
TEST(Algorithms, ATreeHalvesTheTrafficOfTwoNodes) {
  EXPECT_NEAR(seconds(plain(), CollectiveKind::all_reduce, 8, 2, "Ring"), 26e-6 + 2.1, 1e-7);
  EXPECT_NEAR(seconds(plain(), CollectiveKind::all_reduce, 8, 2, "Tree"), 26e-6 + 1.2, 1e-7);
}

// SHARP: up to the switches and back, one network latency, S/4 = 1.2 GB out of each NIC.
TEST(Algorithms, CollNetHalvesTheTrafficOfNics) {
  System system = plain();
  system.fabric_reduction = true;
  for (const char* algorithm : {"CollnetDirect", ""})
    EXPECT_NEAR(seconds(system, CollectiveKind::all_reduce, 16, 4, algorithm), 2e-6 + 10e-6 + 1.2,
                1e-7);
}

// All-to-all: each rank sends 3/16 S = 0.9 GB inside its node and 12/16 S = 3.6 GB out of it.
TEST(Algorithms, AllToAll) {
  EXPECT_NEAR(seconds(plain(), CollectiveKind::all_to_all, 16, 4), 3.6, 1e-3);
  EXPECT_NEAR(seconds(plain(), CollectiveKind::all_to_all, 4, 1), 0.36, 1e-3);
}

// Reduce-scatter in the node: 3 hops, 3/4 S / 10 GB/s = 0.36 s. All-reduce of S/4 over four NICs of
// a rail: 2 x log2(4) hops of 10 us and, around a ring, 2 x 3/4 x 1.2 GB / 1 GB/s = 1.8 s.
// All-gather like the first.
TEST(Algorithms, Hierarchical) {
  EXPECT_NEAR(seconds(plain(), CollectiveKind::all_reduce, 16, 4, "Ring", true),
              2 * (3e-6 + 0.36) + 40e-6 + 1.8, 1e-7);
  EXPECT_EQ(error_text([] {
              System wide = plain();
              wide.nvlink_domain = 8;  // Three nodes: one domain of eight GPUs and one of four.
              seconds(wide, CollectiveKind::all_reduce, 12, 3, "", true);
            }),
            "a hierarchical all-reduce needs equally many ranks in every NVLink domain; use a "
            "multiple of the domain's GPUs");
}

// Bytes that legs leave on links of one kind, by link.
std::map<std::string, double> loads(const Topology& topology, const std::vector<Flow>& flows) {
  std::map<std::string, double> bytes;
  for (const Flow& flow : flows)
    for (const LinkUse& use : flow.route)
      bytes[topology.name(use.link)] += use.times * flow.bytes.si();
  return bytes;
}

std::vector<Rank> ranks_from(int first, int count, int stride = 1) {
  std::vector<Rank> ranks;
  for (int i = 0; i < count; ++i) ranks.push_back(Rank{first + i * stride});
  return ranks;
}

struct Cluster {
  explicit Cluster(const System& of, int ranks = 16)
      : system{of}, placement{plan_of(ranks), system}, topology{Topology::build(system, ranks)} {}

  static Plan plan_of(int ranks) {
    Plan plan;
    plan.tp = ranks;
    return plan;
  }

  // All-reduces of these groups at once, as rings over every rank's real route.
  double run(const std::vector<std::vector<Rank>>& groups) {
    TaskGraph graph;
    for (const std::vector<Rank>& group : groups) {
      Task task;
      task.flows = flows(group);
      graph.add(std::move(task));
    }
    return execute(graph, topology).makespan.seconds().si();
  }

  // One rank a node: each sends 2 x 3/4 S = 7.2 GB to the next.
  std::vector<Flow> flows(const std::vector<Rank>& group) {
    CollectiveCost cost;
    const int ranks = static_cast<int>(group.size());
    cost.network_bytes =
        ring_bytes({CollectiveKind::all_reduce, Bytes{tensor}, {ranks, ranks, 1}}).outside;
    cost.network_rate = system.nic;
    return flows_of(topology, legs_of(placement, group, cost));
  }

  System system;
  Placement placement;
  Topology topology;
};

// Each node on its own leaf, one spine, uplinks as fast as one NIC. k jobs, one rank of every node
// each: k flows out of every leaf share its uplink, so that all take k times as long as one alone.
TEST(Contention, KJobsOnAnOversubscribedSpine) {
  for (int k = 1; k <= 4; ++k) {
    Cluster cluster{leaf_spine(1, 1, 1e9)};
    std::vector<std::vector<Rank>> jobs;
    for (int job = 0; job < k; ++job) jobs.push_back(ranks_from(job, 4, 4));
    EXPECT_NEAR(cluster.run(jobs), k * 7.2, 1e-6) << k;
  }
}

// The same with two spines: each flow picks one by hash. The job is as slow as the link on which
// most flows collide: with c of them at most, c x 7.2 s.
TEST(Contention, EcmpCollisionsCount) {
  int collided = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    System system = leaf_spine(1, 2, 1e9);
    system.shape.ecmp_seed = seed;
    Cluster cluster{system};
    const std::vector<std::vector<Rank>> jobs{ranks_from(0, 4, 4), ranks_from(1, 4, 4)};
    std::vector<Flow> all = cluster.flows(jobs[0]);
    const std::vector<Flow> second = cluster.flows(jobs[1]);
    all.insert(all.end(), second.begin(), second.end());
    double busiest = 0.0;
    for (const auto& [link, bytes] : loads(cluster.topology, all))
      busiest = std::max(busiest, bytes);
    const double collisions = busiest / 7.2e9;
    EXPECT_TRUE(collisions == 1.0 || collisions == 2.0);
    collided += collisions == 2.0;
    EXPECT_NEAR(cluster.run(jobs), collisions * 7.2, 1e-6) << seed;
  }
  EXPECT_GT(collided, 0);
  EXPECT_LT(collided, 20);
}

// Rails: NIC 0 of node 1 is down. Its GPU sends by NIC 1 of its node over NVLink (PXN), which so
// carries two ranks' share: where all sixteen ranks reduce at once, 2 x 2.25 GB.
TEST(Contention, ADownRailIsCarriedByAnother) {
  const System whole = rail_optimized(4, 1, 16e9);
  const System broken = with_down(whole, "node1.nic0");
  const double ring = 46e-6;
  EXPECT_NEAR(seconds(whole, CollectiveKind::all_reduce, 16, 4, "Ring"), ring + 2.25, 1e-6);
  // The detour over a spine costs microseconds, negligible against those seconds.
  EXPECT_NEAR(seconds(broken, CollectiveKind::all_reduce, 16, 4, "Ring"), ring + 4.5, 4e-6);
}

// A NIC at half speed takes twice as long for the same bytes, and all ranks wait for it.
TEST(Contention, AHalfSpeedNicHoldsUpTheRing) {
  System slow = plain();
  LinkOverride half;
  half.link = "node2.nic3";
  half.bandwidth = BytesPerSecond{0.5e9};
  slow.link_overrides.push_back(half);
  EXPECT_NEAR(seconds(slow, CollectiveKind::all_reduce, 16, 4, "Ring"), 46e-6 + 4.5, 1e-6);
  EXPECT_NEAR(seconds(slow, CollectiveKind::all_to_all, 16, 4), 7.2, 1e-3);
}

// The bytes of all legs together, by closed form: conservation on every kind of link.
TEST(Algorithms, LegsCarryTheWholeCollective) {
  Cluster cluster{plain()};
  const std::vector<Rank> all = ranks_from(0, 16);
  const auto sent = [&](CollectiveKind kind, const char* algorithm, bool nic) {
    const CollectiveOptions options{parse_nccl_selection(algorithm, ""), {}, {}};
    const CollectiveCost cost =
        CollectiveTime{cluster.system, options}(kind, Bytes{tensor}, {16, 4, 4});
    double up = 0.0, down = 0.0;
    for (const auto& [link, bytes] :
         loads(cluster.topology, flows_of(cluster.topology, legs_of(cluster.placement, all, cost))))
      if ((link.find("nic") != link.npos) == nic) (link.ends_with(".up") ? up : down) += bytes;
    EXPECT_DOUBLE_EQ(up, down);
    return up;
  };
  // 16 NICs of 2.25 GB, 16 ports of 6.75 GB.
  EXPECT_NEAR(sent(CollectiveKind::all_reduce, "Ring", true), 16 * 2.25e9, 1);
  EXPECT_NEAR(sent(CollectiveKind::all_reduce, "Ring", false), 16 * 6.75e9, 1);
  // Two trees of three edges over four nodes, half of S up and down each: 6 S.
  EXPECT_NEAR(sent(CollectiveKind::all_reduce, "Tree", true), 6 * tensor, 1);
  // Sixteen times 12/16 S out of a node, 3/16 S inside.
  EXPECT_NEAR(sent(CollectiveKind::all_to_all, "", true), 12 * tensor, 1);
  EXPECT_NEAR(sent(CollectiveKind::all_to_all, "", false), 3 * tensor, 1);
  // Four ranks send to the next node, twelve inside.
  EXPECT_NEAR(sent(CollectiveKind::send_recv, "", true), 4 * tensor, 1);
  EXPECT_NEAR(sent(CollectiveKind::send_recv, "", false), 12 * tensor, 1);
}

}  // namespace
}  // namespace orrery::algorithms_test
