// Laws of a collective alone, over all systems of the catalog, all collectives, and all numbers of
// ranks that a node has, some of more nodes.

#include <gtest/gtest.h>

#include <cmath>

#include "sim/collectives/collective_time.hpp"
#include "sim/core/catalog.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::collective_laws_test {
namespace {

constexpr double largest = 32.0 * 1024 * 1024 * 1024;

// Each size up to a KiB that is a whole number of floats, then eight from one power of two to the
// next, and the neighbours of these powers.
std::vector<double> sizes() {
  std::vector<double> list;
  for (double size = 4; size < 1024; size += 4) list.push_back(size);
  for (double power = 1024; power <= largest; power *= 2) {
    list.push_back(power - 4);
    list.push_back(power);
    for (int eighth = 1; eighth < 8; ++eighth)
      list.push_back(4 * std::floor(power / 4 * std::exp2(eighth / 8.0)));
  }
  return list;
}

std::vector<GroupShape> groups_on(const System& system) {
  std::vector<GroupShape> groups;
  for (int ranks = 2; ranks <= system.gpus_per_node; ++ranks)
    groups.push_back(group_on(system, ranks, 1));
  for (const int nodes : {2, 3, 4, 5, 8, 12, 16, 18, 36, 64, 128}) {
    if (system.max_gpus > 0 && nodes * system.gpus_per_node > system.max_gpus) continue;
    const System filled = filled_evenly(system, nodes * system.gpus_per_node);
    groups.push_back(group_on(filled, nodes, nodes));
    groups.push_back(group_on(filled, nodes * system.gpus_per_node, nodes));
  }
  return groups;
}

template <class Check>
void for_each_collective_of(const System& system, const Check& check) {
  for (const CollectiveFacts& one : collective_facts)
    for (const GroupShape& group : groups_on(system)) {
      SCOPED_TRACE(system.name + " " + std::string{name(one.kind)} + " of " +
                   std::to_string(group.ranks) + " on " + std::to_string(group.domains) +
                   " domains");
      check(one.kind, group);
    }
}

TEST(CollectiveLaws, ALargerMessageNeverTakesLess) {
  for (const std::string& word : list_catalog("topologies/systems")) {
    const System system = read_system(word, test_place);
    const CollectiveTime time{system};
    for_each_collective_of(system, [&](CollectiveKind kind, GroupShape group) {
      Seconds before;
      double size_before = 0;
      for (const double size : sizes()) {
        const Seconds now = time(kind, Bytes{size}, group).time();
        if (now.si() < before.si() * (1 - 1e-9)) {
          ADD_FAILURE() << size_before << " bytes take " << before.si() * 1e6 << " us, " << size
                        << " take " << now.si() * 1e6 << " (" << 100 * (now / before - 1) << " %)";
          break;
        }
        before = now;
        size_before = size;
      }
    });
  }
}

}  // namespace
}  // namespace orrery::collective_laws_test
