#include "sim/cost/collective_time.hpp"

#include <gtest/gtest.h>

#include "tests/support/scenarios.hpp"

namespace orrery {
namespace {

CollectiveTime on(const std::string& system) {
  return CollectiveTime{read_system(system, test_place)};
}

TEST(CollectiveTime, OneRankOrNoBytesTakeNoTime) {
  const CollectiveTime time = on("dgx-h100");
  EXPECT_EQ(time(CollectiveKind::all_reduce, Bytes{1e9}, {1, 1, 1}).time().si(), 0.0);
  EXPECT_EQ(time(CollectiveKind::all_reduce, Bytes{0.0}, {8, 1, 8}).time().si(), 0.0);
  EXPECT_EQ(time.send(Bytes{0.0}, true).time().si(), 0.0);
}

// docs/COLLECTIVES.md with the constants of the A100: L = 0.8 x 300 = 240 GB/s, n = 8, S = 256 MB.
//     w = 2 x 7/8 S = 448 MB        latency 9.2 + 14 x 0.88 us = 21.52 us
//     ramp 37 us x 448 / (448 + 2.6) = 36.7865 us
//     copy S / (8 x 2.44 x 240 GB/s) = 54.6448 us      wire w / (0.925 x 240 GB/s) = 2018.0180 us
// together 2130.969 us.
TEST(CollectiveTime, RingOfEightA100) {
  const CollectiveCost cost =
      on("dgx-a100-80gb")(CollectiveKind::all_reduce, Bytes{256e6}, {8, 1, 8});
  EXPECT_EQ(cost.algorithm, "ring");
  EXPECT_EQ(cost.tag, Tag::interpolated);
  EXPECT_NEAR(cost.latency.si(), 21.52e-6 + 36.7865e-6 + 54.6448e-6, 1e-10);
  EXPECT_NEAR(cost.time().si(), 2130.969e-6, 1e-9);
}

// H100, L = 0.824 x 450 = 370.8 GB/s: reduced in the switch each port carries S (1 + 1/8).
//     latency 5.2 + 14 x 0.81 = 16.54 us     ramp 60.5 us x 448 / (448 + 7.5) = 59.5038 us
//     wire 288 MB / (0.8 x 370.8 GB/s) = 970.8738 us
TEST(CollectiveTime, HopperReducesInTheSwitch) {
  const CollectiveCost cost = on("dgx-h100")(CollectiveKind::all_reduce, Bytes{256e6}, {8, 1, 8});
  EXPECT_EQ(cost.algorithm, "nvls");
  EXPECT_NEAR(cost.time().si(), 16.54e-6 + 59.5038e-6 + 970.8738e-6, 1e-9);
}

// Two ranks gain nothing by the switch; gathering does not reduce; nor does an A100's switch.
TEST(CollectiveTime, WhereTheSwitchDoesNotReduce) {
  EXPECT_EQ(on("dgx-h100")(CollectiveKind::all_reduce, Bytes{256e6}, {2, 1, 2}).algorithm, "ring");
  EXPECT_EQ(on("dgx-h100")(CollectiveKind::all_gather, Bytes{256e6}, {8, 1, 8}).algorithm, "ring");
  EXPECT_EQ(
      on("dgx-h100")(CollectiveKind::all_reduce, Bytes{256e6}, {16, 2, 8}).algorithm != "nvls",
      true);
}

// A collective over the network, or on a GPU without measurements, is a default.
TEST(CollectiveTime, TagsSayWhatItRestsOn) {
  EXPECT_EQ(on("dgx-a100-80gb")(CollectiveKind::all_reduce, Bytes{1e6}, {16, 2, 8}).tag,
            Tag::default_value);
  EXPECT_EQ(on("l40s-pcie")(CollectiveKind::all_reduce, Bytes{1e6}, {2, 1, 2}).tag,
            Tag::default_value);
}

// More bytes never take less time, nor do more ranks at the same bytes a rank.
TEST(CollectiveTime, GrowsWithBytesAndRanks) {
  for (const std::string system : {"dgx-a100-80gb", "dgx-h100", "dgx-b200", "gb200-nvl72"})
    for (CollectiveKind kind :
         {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
      SCOPED_TRACE(system + " " + std::string{name(kind)});
      const CollectiveTime time = on(system);
      for (int n : {2, 4, 8}) {
        Seconds before;
        for (double bytes = 1e3; bytes < 1e10; bytes *= 2) {
          const Seconds now = time(kind, Bytes{bytes}, {n, 1, n}).time();
          EXPECT_GT(now, before);
          before = now;
        }
        EXPECT_GT(time(kind, Bytes{1e8}, {2 * n, 2, n}).time(),
                  time(kind, Bytes{1e8}, {n, 1, n}).time());
      }
    }
}

TEST(CollectiveTime, AShareIsThatShareOfEverything) {
  const CollectiveCost whole =
      on("dgx-a100-80gb")(CollectiveKind::all_gather, Bytes{1e8}, {16, 2, 8});
  const CollectiveCost part = whole.scaled(0.25);
  EXPECT_DOUBLE_EQ(part.time().si(), 0.25 * whole.time().si());
  EXPECT_EQ(part.network_bytes, 0.25 * whole.network_bytes);
}

// Between stages. Inside a node: 11.5 us + 0.6 us + 33 us x 64 / (64 + 2.2), then 64 MB at
// 0.845 x 240 GB/s. Between nodes: 11.5 + 5 us, then 64 MB at 0.97 x 25 GB/s.
TEST(CollectiveTime, SendFromStageToStage) {
  const CollectiveTime time = on("dgx-a100-80gb");
  EXPECT_NEAR(time.send(Bytes{64e6}, true).time().si(),
              12.1e-6 + 33e-6 * 64 / 66.2 + 64e6 / (0.845 * 240e9), 1e-12);
  EXPECT_NEAR(time.send(Bytes{64e6}, false).time().si(), 16.5e-6 + 64e6 / (0.97 * 25e9), 1e-12);
}

}  // namespace
}  // namespace orrery
