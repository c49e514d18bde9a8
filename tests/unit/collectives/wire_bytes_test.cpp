#include <gtest/gtest.h>

#include "sim/collectives/collective_time.hpp"
#include "tests/support/nccl_words.hpp"

namespace orrery::wire_bytes_test {
namespace {

constexpr Bytes tensor{4.8e9};
constexpr CollectiveKind reduce = CollectiveKind::all_reduce;
constexpr CollectiveKind gather = CollectiveKind::all_gather;

WireBytes wire_bytes(const char* word, const CollectiveCall& call) {
  static const System h100 = read_system("dgx-h100", {"test", ""});
  return algorithm(word).wire_bytes(h100, NcclProtocol::simple, call);
}

void expect(const char* word, const CollectiveCall& call, double inside, double outside) {
  const WireBytes wire = wire_bytes(word, call);
  EXPECT_NEAR(wire.inside.si(), inside, 1.0);
  EXPECT_NEAR(wire.outside.si(), outside, 1.0);
}

// Four ranks in one domain, S = 4.8 GB. A ring's 2 x 3 rounds carry S/4 each; through the switch
// each port gives all of S to be reduced and a quarter to be multicast.
TEST(WireBytes, InsideADomain) {
  const GroupShape four{4, 1, 4};
  expect("Ring", {reduce, tensor, four}, 7.2e9, 0);
  expect("Ring", {gather, tensor, four}, 3.6e9, 0);
  expect("NVLS", {reduce, tensor, four}, 6e9, 0);
  expect("NVLS", {gather, tensor, four}, 4.8e9, 0);
}

// Sixteen ranks in four domains. Ring: 2 x 15/16 S = 9 GB a rank, a quarter of it out of the NIC.
// Tree: S up and S down inside the domain but for the chain's ends; an inner node of one tree and
// leaf of the other sends 4 x S/2, a quarter of it out of each NIC. SHARP: S/4 out of each NIC,
// half of what a large ring sends.
TEST(WireBytes, BetweenDomains) {
  const GroupShape sixteen{16, 4, 4};
  expect("Ring", {reduce, tensor, sixteen}, 6.75e9, 2.25e9);
  expect("Ring", {gather, tensor, sixteen}, 3.375e9, 1.125e9);
  expect("Tree", {reduce, tensor, sixteen}, 7.2e9, 2.4e9);
  expect("NVLSTree", {reduce, tensor, sixteen}, 6e9, 2.4e9);
  expect("CollnetDirect", {reduce, tensor, sixteen}, 7.2e9, 1.2e9);
  expect("CollnetChain", {reduce, tensor, sixteen}, 7.2e9, 1.2e9);
  // Two domains are root and leaf in turn: a tree halves what their NICs send.
  expect("Tree", {reduce, tensor, {8, 2, 4}}, 7.2e9, 1.2e9);
  expect("Ring", {reduce, tensor, {8, 2, 4}}, 6.3e9, 2.1e9);
  // One GPU a node.
  expect("PAT", {gather, tensor, {4, 4, 1}}, 0, 3.6e9);
}

// The price has the bytes of the algorithm that NCCL takes, or must take.
TEST(WireBytes, OfThePrice) {
  const System system = read_system("dgx-h100", {"test", ""});
  for (const auto& [word, group] : {std::pair{"Ring", GroupShape{8, 1, 8}},
                                    {"NVLS", {8, 1, 8}},
                                    {"Ring", {32, 4, 8}},
                                    {"Tree", {32, 4, 8}},
                                    {"NVLSTree", {16, 2, 8}}}) {
    const CollectiveOptions forced{parse_nccl_selection(word, ""), {}, {}};
    const CollectiveCost cost = CollectiveTime{system, forced}(reduce, tensor, group);
    EXPECT_EQ(cost.algorithm, algorithm(word).name());
    EXPECT_EQ((WireBytes{cost.scale_up_bytes, cost.network_bytes}),
              wire_bytes(word, {reduce, tensor, group}))
        << word;
  }
}

// Whatever is chosen, the time is that of the measured curve or the formula: bytes do not change
// it, and no link is taken to be faster than it is.
TEST(WireBytes, TheTimeStays) {
  for (const char* name : {"dgx-h100", "dgx-a100-80gb", "aws-p5", "dgx-b200", "l40s-pcie"}) {
    const System system = read_system(name, {"test", ""});
    const CollectiveTime price{system};
    for (const GroupShape& group : {GroupShape{2, 1, 2}, {8, 1, 8}, {16, 2, 8}, {64, 8, 8}})
      for (double bytes = 8; bytes < 2e10; bytes *= 4)
        for (CollectiveKind kind : {reduce, gather}) {
          const CollectiveCost cost = price(kind, Bytes{bytes}, group);
          EXPECT_LE(cost.scale_up_rate, system.scale_up * (1 + 1e-12));
          EXPECT_LE(cost.network_rate.si(), system.network_efficiency * system.nic.si() *
                                                system.nics_per_node / system.gpus_per_node *
                                                (1 + 1e-12));
        }
  }
}

}  // namespace
}  // namespace orrery::wire_bytes_test
