#include "sim/collectives/collective_time.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "sim/measurements/calibration.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/nccl_words.hpp"

namespace orrery::collective_time_test {
namespace {

const Place test_place{"test", ""};
constexpr double mib = 1024.0 * 1024;
constexpr GroupShape node{8, 1, 8};

System system(const char* name) { return read_system(name, test_place); }

// NCCL runs the same protocols over both, and RoCE's switches are slower: with the same GPUs and
// NICs, no collective between nodes is faster over it.
TEST(CollectiveTime, RoceIsNoFasterThanInfiniBand) {
  const CollectiveTime infiniband{system("dgx-h200")}, roce{system("hgx-h200-roce")};
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                    CollectiveKind::reduce_scatter, CollectiveKind::all_to_all})
    for (const int nodes : {2, 3, 8, 64})
      for (double bytes = 8.0; bytes <= 8192.0 * mib; bytes *= 2.0) {
        const GroupShape group{8 * nodes, nodes, 8};
        EXPECT_LE(infiniband(kind, Bytes{bytes}, group).time().si(),
                  roce(kind, Bytes{bytes}, group).time().si())
            << name(kind) << " " << nodes << " nodes, " << bytes << " bytes";
      }
}

// calibration/data/collectives/a100-sxm-80gb.json, all_gather on 8: one sweep, whose last points
// are those of 256 and 512 MiB.
std::vector<MeasuredCurve::Point> last_points() {
  for (const MeasuredCurve& curve : read_collective_curves("a100-sxm-80gb"))
    if (curve.collective == CollectiveKind::all_gather && curve.ranks == 8)
      return {curve.points.end()[-2], curve.points.back()};
  return {};
}

TEST(CollectiveTime, AMeasuredSizeTakesWhatWasMeasured) {
  const auto [before, last] = std::pair{last_points()[0], last_points()[1]};
  ASSERT_EQ(last.bytes.si(), 512 * mib);
  const CollectiveTime price{system("dgx-a100-80gb")};
  const CollectiveCost cost = price(CollectiveKind::all_gather, last.bytes, node);
  EXPECT_NEAR(cost.time().si(), last.time.si(), 1e-12);
  EXPECT_EQ(cost.tag, Tag::measured);
  EXPECT_DOUBLE_EQ(cost.scale_up_bytes.si(), 7.0 / 8 * 512 * mib);  // What is on the wire.
  EXPECT_LE(cost.scale_up_rate.si(), 300e9);                        // What the wire carries.

  // Half-way in the logarithm: the geometric mean.
  const Bytes middle{std::sqrt(before.bytes.si() * last.bytes.si())};
  const CollectiveCost between = price(CollectiveKind::all_gather, middle, node);
  EXPECT_NEAR(between.time().si(), std::sqrt(before.time.si() * last.time.si()), 1e-12);
  EXPECT_EQ(between.tag, Tag::interpolated);
}

// The last size, 512 MiB, took 7 us less than the formula says, which its ramp can explain: so does
// every larger one.
TEST(CollectiveTime, BeyondTheLastSizeWhatItsRampMissedIsMissedAgain) {
  const MeasuredCurve::Point last = last_points()[1];
  const CollectiveModel model{system("dgx-a100-80gb")};
  const auto formula = [&](Bytes bytes) {
    return model(CollectiveKind::all_gather, bytes, node).time();
  };
  const CollectiveTime price{system("dgx-a100-80gb")};
  const Bytes far{4096 * mib};
  EXPECT_NEAR(price(CollectiveKind::all_gather, far, node).time().si(),
              (formula(far) + last.time - formula(last.bytes)).si(), 1e-12);
}

System with_sweep(const char* name, CollectiveKind kind, int ranks,
                  std::vector<MeasuredCurve::Point> points) {
  System cluster = system(name);
  MeasuredCurve curve;
  curve.id = "made up";
  curve.collective = kind;
  curve.ranks = ranks;
  curve.nodes = 1;
  curve.points = std::move(points);
  const auto calibration = std::make_shared<Calibration>();
  calibration->curves = {curve};
  cluster.calibration = calibration;
  return cluster;
}

// A sweep of small messages, timed from Python: 50 us more than NCCL takes are no rate, whatever
// the formula gives to latency. A larger message is missed by no larger factor, and takes no less.
TEST(CollectiveTime, SweepsOfSmallMessagesSayNothingOfTheRate) {
  for (const char* name : {"dgx-h100", "rtx-pro-6000-pcie"}) {
    for (double end : {8192.0, 32768.0, 65536.0}) {
      const GroupShape four{4, 1, 4};
      const CollectiveModel model{system(name)};
      const auto formula = [&](double bytes) {
        return model(CollectiveKind::all_reduce, Bytes{bytes}, four).time();
      };
      const double times = 70e-6 / formula(end).si();
      const CollectiveTime price{
          with_sweep(name, CollectiveKind::all_reduce, 4,
                     {{Bytes{8.0}, microseconds(70.0)}, {Bytes{end}, microseconds(70.0)}})};
      Seconds before = microseconds(70.0);
      for (double bytes = end; bytes < 1e9; bytes *= 1.09) {
        const Seconds time = price(CollectiveKind::all_reduce, Bytes{bytes}, four).time();
        EXPECT_GE(time, before) << name << " " << end << " " << bytes;
        EXPECT_LE(time / formula(bytes), times * (1.0 + 1e-9)) << name << " " << bytes;
        before = time;
      }
    }
  }
}

// Three GB200 lie between two, measured to 512 MiB, and four, whose sweeps end at 16 to 32 MiB:
// there nothing jumps.
TEST(CollectiveTime, BetweenNumbersOfRanksNothingJumpsWhereASweepEnds) {
  const CollectiveTime price{system("gb200-nvl72")};
  const GroupShape three{3, 1, 3};
  for (CollectiveKind kind :
       {CollectiveKind::all_gather, CollectiveKind::all_to_all, CollectiveKind::reduce_scatter}) {
    Seconds before;
    for (double bytes = 4 * mib; bytes < 256 * mib; bytes *= 1.02) {
      const Seconds time = price(kind, Bytes{bytes}, three).time();
      EXPECT_GE(time / before, 0.995) << name(kind) << " " << bytes;
      before = time;
    }
  }
}

// The mean error of time on what was measured of `kind` on `ranks` GPUs of a node, without it.
double error_left_out(const char* name, const char* gpu, CollectiveKind kind, int ranks) {
  const GroupShape group{ranks, 1, ranks};
  CollectiveOptions options;
  options.left_out = CollectiveShape{kind, group};
  const CollectiveTime price{system(name), options};
  double sum = 0.0;
  int points = 0;
  for (const MeasuredCurve& curve : read_collective_curves(gpu))
    if (curve.collective == kind && curve.ranks == ranks && curve.nodes == 1)
      for (const auto& [bytes, time] : curve.points) {
        sum += std::abs(price(kind, bytes, group).time() / time - 1.0);
        ++points;
      }
  EXPECT_GT(points, 0) << name << ranks;
  return sum / points;
}

// Two L40S share a switch, four cross host bridges and eight CPU sockets; the rings through a
// V100's mesh are 1, 2, 4, 2, 2, 4, 6 for two to eight. Times between those of the neighbours were
// 50 to 200 % off.
TEST(CollectiveTime, NothingIsInterpolatedAcrossAStepOfTheWiring) {
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                    CollectiveKind::reduce_scatter, CollectiveKind::all_to_all})
    EXPECT_LT(error_left_out("l40s-pcie", "l40s-pcie", kind, 4), 0.13) << name(kind);
  for (const int ranks : {3, 6, 7})
    EXPECT_LT(error_left_out("dgx-1-v100", "v100-sxm-32gb", CollectiveKind::all_reduce, ranks),
              0.08)
        << ranks;
  // Three cards cross what four do: their ring has 8/9 of the bytes on a link.
  const CollectiveTime price{system("l40s-pcie")};
  const auto time = [&](int n) {
    return price(CollectiveKind::all_reduce, Bytes{32 * mib}, {n, 1, n}).time();
  };
  EXPECT_NEAR(time(3) / time(4), 8.0 / 9, 0.02);
  EXPECT_NEAR(time(7) / time(8), (6.0 / 7) / (7.0 / 8), 0.02);
  EXPECT_NEAR(time(5) / time(8), (4.0 / 5) / (7.0 / 8), 0.02);
}

// The rounds of an all-reduce rise with the ranks until NVLS saves them at eight: between four GPUs
// of a GB200 and the 72 of its rack, eight take what eight B300 of a node took, where times linear
// in the ranks were a third less.
TEST(CollectiveTime, EightOfARackTakeWhatEightOfANodeDo) {
  const GroupShape eight{8, 1, 8};
  const CollectiveTime rack{system("gb200-nvl72")}, board{system("dgx-b300")};
  for (const double bytes : {1024.0, 32768.0, 32.0 * mib})
    EXPECT_NEAR(rack(CollectiveKind::all_reduce, Bytes{bytes}, eight).time() /
                    board(CollectiveKind::all_reduce, Bytes{bytes}, eight).time(),
                1.0, 0.15)
        << bytes;
  EXPECT_LT(error_left_out("gb200-nvl72", "gb200", CollectiveKind::all_reduce, 4), 0.07);
}

// What one server's host bridges do is not known of another's.
TEST(CollectiveTime, PcieSweepsAreOfTheirServer) {
  System other = system("l40s-pcie");
  other.name = "my-server";
  const Bytes bytes{32 * mib};
  const auto tag = [&](const System& cluster, int n) {
    return CollectiveTime{cluster}(CollectiveKind::all_reduce, bytes, {n, 1, n}).tag;
  };
  for (int n : {2, 4, 8}) EXPECT_EQ(tag(system("l40s-pcie"), n), Tag::measured) << n;
  EXPECT_EQ(tag(other, 2), Tag::measured);
  for (int n : {4, 8}) EXPECT_EQ(tag(other, n), Tag::default_value) << n;
}

// Every sweep of a single node, cut at 32 MiB, against what it measured from 64 MiB on: as good as
// the formula alone (3.6 %), where a factor that keeps the last size's would be 9 % off.
TEST(CollectiveTime, SweepsThatEndEarlyAreContinued) {
  double sum = 0.0;
  int points = 0;
  for (const auto& [name, gpu] : {std::pair{"dgx-a100-80gb", "a100-sxm-80gb"},
                                  {"dgx-h100", "h100-sxm"},
                                  {"dgx-h200", "h200-sxm"},
                                  {"dgx-b200", "b200-sxm"},
                                  {"dgx-b300", "b300-sxm"},
                                  {"gb200-nvl72", "gb200"},
                                  {"gb300-nvl72", "gb300"},
                                  {"l40s-pcie", "l40s"},
                                  {"rtx-pro-6000-pcie", "rtx-pro-6000-blackwell"},
                                  {"rtx-pro-6000-pcie", "rtx-pro-6000-pcie"}}) {
    for (const MeasuredCurve& whole : read_collective_curves(gpu)) {
      if (whole.nodes > 1 || whole.points.front().bytes.si() > mib) continue;
      MeasuredCurve cut = whole;
      std::erase_if(cut.points, [](const auto& point) { return point.bytes.si() > 32 * mib; });
      if (cut.points.size() == whole.points.size()) continue;
      const System cluster = with_sweep(name, cut.collective, cut.ranks, cut.points);
      const CollectiveTime price{cluster};
      for (const auto& [bytes, time] : whole.points) {
        if (bytes.si() < 64 * mib) continue;
        const GroupShape group = group_on(cluster, whole.ranks, 1);
        sum += std::abs(price(whole.collective, bytes, group).time() / time - 1.0);
        ++points;
      }
    }
  }
  EXPECT_GT(points, 300);
  EXPECT_LT(sum / points, 0.045);
}

// 32 MiB over eight L40S took 38.85 ms, 16 % less than the formula's 45 ms, of which only 0.1 ms
// are no bytes: here the rate is another, and larger messages keep it.
TEST(CollectiveTime, BeyondTheLastSizeARateThatWasMissedIsMissedAgain) {
  const CollectiveTime price{system("l40s-pcie")};
  const auto time = [&](double bytes) {
    return price(CollectiveKind::all_reduce, Bytes{bytes}, node).time();
  };
  EXPECT_NEAR(time(32 * mib).si(), 38850e-6, 1e-12);
  EXPECT_NEAR(time(4096 * mib) / time(32 * mib), 128.0, 0.5);
}

// What a fabric's further switches add comes on top, also of a sweep: two nodes, one hop a pass.
TEST(CollectiveTime, FurtherSwitchesAreAddedOnce) {
  const CollectiveTime price{system("dgx-h100")};
  const GroupShape near{16, 2, 8};
  GroupShape far = near;
  far.further_switches = microseconds(3.0);
  for (const auto& [kind, hops] :
       {std::pair{CollectiveKind::all_gather, 1.0}, {CollectiveKind::reduce_scatter, 1.0}}) {
    const CollectiveCost here = price(kind, Bytes{64 * mib}, near);
    const CollectiveCost there = price(kind, Bytes{64 * mib}, far);
    EXPECT_NEAR((there.time() - here.time()).si(), hops * 3e-6, 1e-12) << name(kind);
    EXPECT_EQ(there.tag, here.tag);
  }
  // Of an all-to-all the two parts run side by side: what NVLink's latency covers does not count.
  const auto pairs = [&](GroupShape group) {
    return price(CollectiveKind::all_to_all, Bytes{64 * mib}, group).time().si();
  };
  EXPECT_LE(pairs(far) - pairs(near), 3e-6 + 1e-12);
  GroupShape farther = far;
  farther.further_switches = microseconds(5.0);
  EXPECT_NEAR(pairs(farther) - pairs(far), 2e-6, 1e-12);
  const Seconds sent = price.send(Bytes{mib}, false, microseconds(3.0)).time();
  EXPECT_NEAR((sent - price.send(Bytes{mib}, false).time()).si(), 3e-6, 1e-12);
  EXPECT_EQ(price.send(Bytes{mib}, true, microseconds(3.0)).time(),
            price.send(Bytes{mib}, true).time());
}

// 512 MiB gathered by a ring of eight A100, in the constants of calibration/data/collectives.json:
// 9.2 us and 7 steps of 0.88; 7/8 of it, w = 469.8 MB, at 0.925 of 0.8 x 300 GB/s; a ramp of 37 us
// x w / (w + 2.6 MB); and a copy of 1/8 at 2.44 x 240 GB/s: 2,282.8 us.
constexpr double wire = 7.0 / 8 * 512 * mib;
constexpr double by_formula = 9.2e-6 + 7 * 0.88e-6 + wire / (0.925 * 240e9) +
                              37e-6 * wire / (wire + 2.6e6) + 512 * mib / 8 / (2.44 * 240e9);

// Eight is the largest measured size: without its sweep there are no neighbours on both sides, and
// only the formula is left. The sweep has another time, so that it cannot have been used.
TEST(CollectiveTime, WhatIsLeftOutIsPredicted) {
  CollectiveOptions options;
  options.left_out = CollectiveShape{CollectiveKind::all_gather, node};
  const CollectiveTime price{system("dgx-a100-80gb"), options};
  const Bytes bytes{512 * mib};
  const CollectiveCost predicted = price(CollectiveKind::all_gather, bytes, node);
  EXPECT_NEAR(predicted.time().si(), by_formula, 1e-12);
  EXPECT_EQ(predicted.tag, Tag::interpolated);
  const CollectiveCost measured =
      CollectiveTime{system("dgx-a100-80gb")}(CollectiveKind::all_gather, bytes, node);
  EXPECT_EQ(measured.tag, Tag::measured);
  EXPECT_GT(std::abs(measured.time() / predicted.time() - 1.0), 1e-3);
  // Nothing else is left out.
  const CollectiveTime all{system("dgx-a100-80gb")};
  EXPECT_EQ(price(CollectiveKind::reduce_scatter, bytes, node).time(),
            all(CollectiveKind::reduce_scatter, bytes, node).time());
}

// An all-gather was measured on 2, 4 and 8 ranks: at the same bytes a rank, 3 and 6 miss the
// formula by what their neighbours do, weighted by the logarithm of the ranks.
TEST(CollectiveTime, BetweenTwoNumbersOfRanksDistancesFromTheFormulaAreMeans) {
  const System cluster = system("dgx-a100-80gb");
  const CollectiveTime price{cluster};
  const CollectiveModel formula{cluster};
  const auto missed = [&](int n, double share) {
    const Bytes bytes{share * n};
    const GroupShape group{n, 1, n};
    return std::log(price(CollectiveKind::all_gather, bytes, group).time() /
                    formula(CollectiveKind::all_gather, bytes, group).time());
  };
  for (const double share : {512.0, 2 * mib, 64 * mib}) {
    const double third = std::log2(1.5);  // Of the way from 2 to 4, and from 4 to 8.
    EXPECT_NEAR(missed(3, share), (1 - third) * missed(2, share) + third * missed(4, share), 1e-9);
    EXPECT_NEAR(missed(6, share), (1 - third) * missed(4, share) + third * missed(8, share), 1e-9);
  }
}

TEST(CollectiveTime, AProxyIsNotMeasured) {
  const Bytes bytes{512 * mib};
  EXPECT_EQ(CollectiveTime{system("dgx-a100-40gb")}(CollectiveKind::all_gather, bytes, node).tag,
            Tag::interpolated);
}

TEST(CollectiveTime, SlowerPortsThanTheGpusOwnWereNotMeasured) {
  System half = system("dgx-a100-80gb");
  half.scale_up = 0.5 * half.scale_up;
  const Bytes bytes{512 * mib};
  // All that moves on the ports takes twice as long; what waits does not.
  const double waits = 9.2e-6 + 7 * 0.88e-6 + 37e-6 * wire / (wire + 2.6e6);
  EXPECT_NEAR(CollectiveTime{half}(CollectiveKind::all_gather, bytes, node).time().si(),
              waits + 2 * (by_formula - waits), 1e-12);
}

TEST(CollectiveTime, AnotherMachineOfTheSameNameWasNotMeasured) {
  System system = read_system("dgx-h100", test_place);
  const GroupShape two_nodes{16, 2, 8};
  const auto tag = [&] {
    return CollectiveTime{system}(CollectiveKind::all_reduce, Bytes{1024 * 1024}, two_nodes).tag;
  };
  EXPECT_EQ(tag(), Tag::measured);
  system.nic = 0.25 * system.nic;
  EXPECT_EQ(tag(), Tag::interpolated);
  // A slightly slower network is slightly slower, at every size.
  const System p5 = read_system("aws-p5", test_place);
  for (double bytes = 8.0; bytes <= 1e10; bytes *= 4.0) {
    const auto time = [&](const System& of) {
      return CollectiveTime{of}(CollectiveKind::all_reduce, Bytes{bytes}, two_nodes).time().si();
    };
    System slower = p5;
    slower.nic = 0.99 * p5.nic;
    slower.network_latency = 1.01 * p5.network_latency;
    EXPECT_GE(time(slower), time(p5)) << bytes;
    EXPECT_LE(time(slower), 1.02 * time(p5)) << bytes;
  }
  system = read_system("dgx-h100", test_place);
  system.in_network_reduction = false;
  EXPECT_EQ(tag(), Tag::default_value);
  // Other NICs are another network; what was measured in one node still holds.
  System cards = read_system("l40s-pcie", test_place);
  cards.nic = 2.0 * cards.nic;
  const GroupShape in_node{8, 1, 8};
  const CollectiveTime price{cards};
  EXPECT_EQ(price(CollectiveKind::all_reduce, Bytes{1024 * 1024}, in_node).tag, Tag::measured);
}

TEST(CollectiveTime, NothingTakesNoTime) {
  const CollectiveTime price{system("dgx-h100")};
  EXPECT_EQ(price(CollectiveKind::all_reduce, Bytes{}, node).time(), Seconds{});
  EXPECT_EQ(price(CollectiveKind::all_to_all, Bytes{mib}, {1, 1, 1}).time(), Seconds{});
  EXPECT_EQ(price.send(Bytes{}, true).time(), Seconds{});
}

// The switch was measured, the ring was not: it has its formula's price.
TEST(CollectiveTime, AForcedAlgorithmHasThePriceOfItsFormula) {
  CollectiveOptions ring;
  ring.selection = parse_nccl_selection("ring", "");
  const System h100 = system("dgx-h100");
  const Bytes gib{1024 * mib};
  const CollectiveCost free = CollectiveTime{h100}(CollectiveKind::all_reduce, gib, node);
  const CollectiveCost forced = CollectiveTime{h100, ring}(CollectiveKind::all_reduce, gib, node);
  EXPECT_EQ(free.algorithm, "NVLS");
  EXPECT_EQ(forced.algorithm, "ring");
  EXPECT_EQ(forced.tag, Tag::default_value);
  const auto formula =
      algorithm("Ring").price(CollectiveModel{h100}, {CollectiveKind::all_reduce, gib, node});
  EXPECT_NEAR(forced.time() / formula->time(), 1.0, 1e-9);
  // What NCCL would have taken by itself keeps its measured price.
  CollectiveOptions nvls;
  nvls.selection = parse_nccl_selection("NVLS", "");
  const CollectiveCost same = CollectiveTime{h100, nvls}(CollectiveKind::all_reduce, gib, node);
  EXPECT_EQ(same.time(), free.time());
  EXPECT_EQ(same.tag, free.tag);
}

// Eight bytes: a ring of LL waits 6.6 + 14 x 0.6 us, of Simple 8.4 + 14 x 3.4 (nccl_tuner_test).
TEST(CollectiveTime, AForcedProtocolIsSlowerByTheTunersOwnRatio) {
  CollectiveOptions simple;
  simple.selection = parse_nccl_selection("Ring", "Simple");
  const System h100 = system("dgx-h100");
  const CollectiveCost free = CollectiveTime{h100}(CollectiveKind::all_reduce, Bytes{8}, node);
  const CollectiveCost forced =
      CollectiveTime{h100, simple}(CollectiveKind::all_reduce, Bytes{8}, node);
  EXPECT_EQ(free.protocol, "LL");
  EXPECT_EQ(forced.protocol, "Simple");
  EXPECT_NEAR(forced.time() / free.time(), 56.0 / 15.0, 1e-4);  // The bytes take 0.1 ns.
}

TEST(CollectiveTime, WhatCannotBeForcedIsRefused) {
  CollectiveOptions tree;
  tree.selection = parse_nccl_selection("Tree", "");
  const CollectiveTime price{system("dgx-h100"), tree};
  EXPECT_EQ(error_text([&] { price(CollectiveKind::all_gather, Bytes{mib}, node); }),
            "none of the NCCL algorithms and protocols that are allowed can do all_gather here; "
            "allow Ring with Simple, which always can");
}

// AWS p5, calibration/data/collectives/aws-p5.json: all-reduces of eight GPUs a node over 2 to 32
// nodes. Two GPUs a node take as many times longer than the formula says as eight do whose NICs
// carry the same; over 24 nodes the factor lies between those of 16 and 32, over 64 it is that of
// 32.
TEST(CollectiveTime, BetweenNodesAsManyOthersWere) {
  const CollectiveTime price{system("aws-p5")};
  const CollectiveModel model{system("aws-p5")};
  const auto factor = [&](double bytes, GroupShape group) {
    return price(CollectiveKind::all_reduce, Bytes{bytes}, group).time() /
           model(CollectiveKind::all_reduce, Bytes{bytes}, group).time();
  };
  const double of_16 = factor(256 * mib, {128, 16, 8}), of_32 = factor(256 * mib, {256, 32, 8});
  EXPECT_NEAR(price(CollectiveKind::all_reduce, Bytes{256 * mib}, {256, 32, 8}).time().si(),
              256 * mib / 69.26e9, 1e-6);
  EXPECT_GT(of_16, 1.5);
  EXPECT_GT(of_32, 1.5);
  EXPECT_NEAR(factor(64 * mib, {64, 32, 2}), of_32, 1e-9);
  EXPECT_NEAR(factor(32 * mib, {32, 32, 1}), of_32, 1e-9);
  EXPECT_NEAR(factor(256 * mib, {512, 64, 8}), of_32, 1e-9);
  const double share = std::log(24.0 / 16.0) / std::log(2.0);
  EXPECT_NEAR(std::log(factor(256 * mib, {192, 24, 8})),
              (1 - share) * std::log(of_16) + share * std::log(of_32), 1e-9);
  // Gathers were not measured there.
  EXPECT_EQ(price(CollectiveKind::all_gather, Bytes{64 * mib}, {64, 32, 2}).time(),
            model(CollectiveKind::all_gather, Bytes{64 * mib}, {64, 32, 2}).time());
}

TEST(CollectiveTime, RanksLieEvenlyOnNodes) {
  EXPECT_EQ(group_on(system("dgx-h100"), 16, 2), (GroupShape{16, 2, 8}));
  EXPECT_EQ(group_on(system("dgx-h100"), 2, 2), (GroupShape{2, 2, 1}));
  EXPECT_EQ(group_on(system("gb200-nvl72"), 72, 18), (GroupShape{72, 1, 72}));
  EXPECT_EQ(error_text([] { group_on(system("dgx-h100"), 9, 2); }),
            "9 ranks do not spread evenly over 2 nodes; choose a multiple of the nodes");
  EXPECT_EQ(error_text([] { group_on(system("dgx-h100"), 16, 1); }),
            "16 ranks do not fit on 1 nodes of 8 GPUs; use more nodes");
}

}  // namespace
}  // namespace orrery::collective_time_test
