// Every collective, by every algorithm that applies, on every small machine: folded against every
// rank's flows over their real routes.
#include <gtest/gtest.h>

#include <cmath>

#include "sim/collectives/isolated_collective.hpp"
#include "sim/core/error.hpp"
#include "tests/support/fabrics.hpp"

namespace orrery::isolated_collectives_test {
namespace {

// Values of NCCL_ALGO: nothing, or one of the algorithms.
std::vector<std::string> forced() {
  std::vector<std::string> words{""};
  for (const NcclAlgorithm* algorithm : nccl_algorithms()) words.push_back(algorithm->word());
  return words;
}

struct Machine {
  std::string name;
  System system;
};

System with_shared_nics() {
  System system = fabric_system(FabricLayout::single_switch);
  system.nics_per_node = 2;
  return system;
}

System with_half_speed(System system, const std::string& nic) {
  LinkOverride slow;
  slow.link = nic;
  slow.bandwidth = 0.5 * system.nic;
  system.link_overrides.push_back(slow);
  return system;
}

// GPUs with NVLink SHARP under InfiniBand switches that reduce: all algorithms apply.
System with_sharp() {
  System system = read_system("dgx-h100", {"test", ""});
  system.gpus_per_node = system.nvlink_domain = system.nics_per_node = 4;
  system.fabric_reduction = true;
  return system;
}

System in_pcie_nodes() {
  System system = read_system("l40s-pcie", {"test", ""});
  system.gpus_per_node = system.nvlink_domain = 4;
  system.nics_per_node = 2;
  return system;
}

// One domain of two nodes, so that four nodes are two domains.
System with_wide_domains() {
  System system = fabric_system(FabricLayout::single_switch);
  system.nvlink_domain = 8;
  return system;
}

std::vector<Machine> machines() {
  const System tree = fat_tree(1, 2, 2, 2, 1e9, 1e9);
  return {
      {"single switch", fabric_system(FabricLayout::single_switch)},
      {"two GPUs a NIC", with_shared_nics()},
      {"domains of two nodes", with_wide_domains()},
      {"SHARP", with_sharp()},
      {"PCIe", in_pcie_nodes()},
      {"leaf-spine, 2:1", leaf_spine(1, 2, 1e9)},
      {"leaf-spine, two nodes a leaf", leaf_spine(2, 2, 2e9)},
      {"leaf-spine, a spine link down", with_down(leaf_spine(1, 2, 2e9), "leaf0-spine0")},
      {"rail-optimized", rail_optimized(2, 2, 1e9)},
      {"rail-optimized, a NIC down", with_down(rail_optimized(4, 2, 2e9), "node1.nic0")},
      {"fat tree", tree},
      {"dragonfly", dragonfly(1, 2, 2, 1, 2e9, 1e9)},
      {"ring of switches", ring_of_switches(4, 2e9)},
      {"half-speed NIC", with_half_speed(fabric_system(FabricLayout::single_switch), "node1.nic0")},
      {"half-speed NIC in a tree", with_half_speed(tree, "node0.nic2")},
      {"a NIC down", with_down(fabric_system(FabricLayout::single_switch), "node1.nic0")}};
}

struct Comparison {
  int compared = 0;
  int refused = 0;
  double largest = 0.0;
  std::string where;
};

void compare(const IsolatedCollective& collective, const Machine& machine,
             const std::string& algorithm, Comparison& all) {
  const std::string what = machine.name + ": " + std::string{name(collective.kind)} + " " +
                           algorithm + " of " + std::to_string(collective.ranks) + " ranks on " +
                           std::to_string(collective.nodes) + " nodes, " +
                           std::to_string(static_cast<long>(collective.bytes.si())) + " bytes";
  const CollectiveOptions options{parse_nccl_selection(algorithm, ""), {}, {}};
  try {
    const double folded = run_alone(collective, machine.system, options).time.si();
    const double whole = run_alone(collective, machine.system, options, true).time.si();
    ++all.compared;
    const double difference = whole > 0.0 ? std::abs(folded / whole - 1.0) : folded;
    EXPECT_LT(difference, 1e-3) << what << ": " << folded << " s folded, " << whole << " s whole";
    if (difference > all.largest) all.largest = difference, all.where = what;
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::infeasible) throw;
    ++all.refused;  // The algorithm does not apply, or no way is left.
  }
}

// 1 to 4 nodes with 1 to 4 GPUs of each: up to 16 ranks; small, middling and large tensors that
// split into whole bytes, to which the engine rounds.
TEST(IsolatedCollectives, FoldedGivesTheTimeOfEveryRank) {
  Comparison all;
  for (const Machine& machine : machines())
    for (int nodes = 1; nodes <= 4; ++nodes)
      for (int in_node = 1; in_node <= 4; ++in_node)
        for (const auto& [kind, word, nccl_name, passes, reduces, rooted] : collective_facts)
          for (const std::string& algorithm : forced())
            for (double bytes : {1008.0, 1.44e6, 1.44e9}) {
              if (nccl_name.empty() && !algorithm.empty()) continue;
              IsolatedCollective collective{kind, nodes * in_node, nodes, Bytes{bytes}, false};
              compare(collective, machine, algorithm, all);
              if (kind != CollectiveKind::all_reduce || !algorithm.empty()) continue;
              collective.hierarchical = true;
              compare(collective, machine, algorithm, all);
            }
  RecordProperty("compared", all.compared);
  RecordProperty("refused", all.refused);
  RecordProperty("largest_difference", std::to_string(all.largest) + " at " + all.where);
  std::printf("%d compared, %d refused; largest difference %.2g (%s)\n", all.compared, all.refused,
              all.largest, all.where.c_str());
  EXPECT_GT(all.compared, 5000);
}

}  // namespace
}  // namespace orrery::isolated_collectives_test
