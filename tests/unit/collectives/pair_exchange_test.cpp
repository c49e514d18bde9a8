#include <gtest/gtest.h>

#include <map>

#include "sim/collectives/collective_flows.hpp"
#include "tests/support/fabrics.hpp"
#include "tests/support/placements.hpp"

namespace orrery::pair_exchange_test {
namespace {

constexpr BytesPerSecond inside{8e9};
constexpr BytesPerSecond outside{1e9};

std::vector<Rank> first_ranks(int count) {
  std::vector<Rank> ranks;
  for (int r = 0; r < count; ++r) ranks.push_back(Rank{r});
  return ranks;
}

// Whole bytes, some of them 0.
Exchange uneven(int members) {
  std::vector<double> bytes;
  for (int i = 0; i < members * members; ++i) bytes.push_back((7 * i + i / 3) % 5 * 1000.0);
  return Exchange::matrix(members, bytes);
}

double sum(const Exchange& exchange) {
  double all = 0.0;
  for (int i = 0; i < exchange.members(); ++i)
    for (int j = 0; j < exchange.members(); ++j) all += exchange.between(i, j).si();
  return all;
}

// Bytes that flows put on each link, each as often as flows of its kind cross it.
std::map<std::string, double> loads(const Topology& topology, const std::vector<Flow>& flows) {
  std::map<std::string, double> bytes;
  for (const Flow& flow : flows)
    for (const LinkUse& use : flow.route)
      bytes[topology.name(use.link)] += use.times * flow.bytes.si();
  return bytes;
}

// Nothing is lost or doubled: what ports send and receive is what pairs exchange.
TEST(Exchange, PortsAndLegsCarryWhatPairsExchange) {
  for (int node = 1; node <= 5; ++node)
    for (int size = 2; size <= 12; ++size)
      for (const Exchange& exchange : {Exchange::uniform(size, Bytes{100.0}), uneven(size)}) {
        SCOPED_TRACE(std::to_string(size) + " ranks in nodes of " + std::to_string(node));
        const Placement placement = placement_of(size, 1, 1, nodes_of(node, node));
        double sent = 0.0, received = 0.0, carried = 0.0;
        for (const PortBytes& port : port_bytes(placement, first_ranks(size), exchange)) {
          sent += port.sent_inside.si() + port.sent_outside.si();
          received += port.received_inside.si() + port.received_outside.si();
        }
        for (const Leg& leg : legs_of(placement, first_ranks(size), exchange, inside, outside)) {
          carried += leg.bytes.si();
          EXPECT_EQ(leg.same_domain, placement.same_domain(leg.from, leg.to));
        }
        EXPECT_EQ(sent, sum(exchange));
        EXPECT_EQ(received, sum(exchange));
        EXPECT_EQ(carried, sum(exchange));
      }
}

// The pairs of no port together are faster than the port, and those of the busiest as fast.
TEST(Exchange, LegsShareThePort) {
  const Placement placement = placement_of(8, 1, 1, nodes_of(4, 4));
  std::map<std::pair<int, bool>, double> out, in;
  for (const Leg& leg : legs_of(placement, first_ranks(8), uneven(8), inside, outside)) {
    out[{leg.from.value, leg.same_domain}] += leg.rate.si();
    in[{leg.to.value, leg.same_domain}] += leg.rate.si();
  }
  double fastest = 0.0;
  for (const auto* ports : {&out, &in})
    for (const auto& [port, rate] : *ports) {
      EXPECT_LE(rate, (port.second ? inside : outside).si() * (1.0 + 1e-12));
      fastest = std::max(fastest, rate);
    }
  EXPECT_DOUBLE_EQ(fastest, inside.si());
}

// Four GPUs a node, 8 ranks, 100 B a pair: a role sends 300 B to its node and 400 B out of it, and
// receives as much: one flow a port, over both its directions.
TEST(ExchangeFlows, OneFlowAPortWhereAllAreAlike) {
  const System system = nodes_of(4, 4);
  const RankClasses classes = RankClasses::folded(placement_of(8, 1, 1, system));
  Topology topology = Topology::build(system, 8);
  const std::vector<Flow> flows = exchange_flows(
      topology, classes, first_ranks(8), Exchange::uniform(8, Bytes{100.0}), inside, outside);
  ASSERT_EQ(flows.size(), 2u);
  EXPECT_EQ(flows[0].bytes, Bytes{300.0});
  EXPECT_EQ(flows[0].rate, inside);
  EXPECT_EQ(flows[0].route.size(), 2u);
  EXPECT_EQ(flows[1].bytes, Bytes{400.0});
  EXPECT_EQ(flows[1].rate, outside);
  EXPECT_TRUE(topology.link(flows[1].route[0].link).is_nic());
}

// Two ranks of one node, the first with 100 B for the second, which has 30 B for it.
TEST(ExchangeFlows, InAndOutApartWhereTheyDiffer) {
  const System system = nodes_of(4, 4);
  // Two stages: two classes, though one group of ours.
  const RankClasses classes = RankClasses::folded(placement_of(4, 1, 2, system));
  Topology topology = Topology::build(system, 8);
  const std::vector<Flow> flows =
      exchange_flows(topology, classes, {Rank{0}, Rank{4}},
                     Exchange::matrix(2, {7.0, 100.0, 30.0, 7.0}), inside, outside);
  const std::map<std::string, double> expected{{"node0.nic0.up", 100.0},
                                               {"node0.nic0.down", 30.0},
                                               {"node1.nic0.up", 30.0},
                                               {"node1.nic0.down", 100.0}};
  EXPECT_EQ(loads(topology, flows), expected);
  EXPECT_EQ(flows.size(), 4u);
}

// Every rank for itself: each pair over its own route, whatever lies between.
TEST(ExchangeFlows, UnfoldedEveryPairGoesItsOwnWay) {
  for (const System& system : {nodes_of(4, 4), nodes_of(4, 2), leaf_spine(1, 2, 1e9)}) {
    const Placement placement = placement_of(8, 1, 1, system);
    Topology topology = Topology::build(system, 8);
    const RankClasses classes =
        system.uniform()
            ? RankClasses::unfolded(placement)
            : RankClasses::unfolded_on(placement, topology, std::vector<double>(8, 1.0));
    const Exchange exchange = uneven(8);
    std::map<std::string, double> expected;
    for (int i = 0; i < 8; ++i)
      for (int j = 0; j < 8; ++j)
        if (exchange.between(i, j).si() > 0.0)
          for (LinkId link : topology.route(Rank{i}, Rank{j}))
            expected[topology.name(link)] += exchange.between(i, j).si();
    EXPECT_EQ(loads(topology,
                    exchange_flows(topology, classes, first_ranks(8), exchange, inside, outside)),
              expected);
  }
}

}  // namespace
}  // namespace orrery::pair_exchange_test
