#include "sim/nccl/nccl_tuner.hpp"

#include <gtest/gtest.h>

#include "tests/support/error_text.hpp"

namespace orrery::nccl_tuner_test {
namespace {

const Place test_place{"test", ""};
constexpr double gib = 1024.0 * 1024 * 1024;
constexpr GroupShape node{8, 1, 8};

// Hopper: 18 links of 20.6 GB/s.
NcclTuner hopper(const char* system = "dgx-h100") {
  return {read_system(system, test_place), BytesPerSecond{370.8e9}};
}

void expect(const NcclTuner::Choice& choice, const char* word, NcclProtocol protocol,
            double seconds) {
  EXPECT_EQ(choice.algorithm->word(), word);
  EXPECT_EQ(name(choice.protocol), name(protocol));
  EXPECT_NEAR(choice.time.si(), seconds, 1e-9);
}

TEST(NcclTuner, SmallMessagesTakeARingWithFlags) {
  // 6.6 + 14 x 0.6 us. Simple would wait 8.4 + 14 x 3.4, NVLS 25.
  const auto choice = hopper().choose({CollectiveKind::all_reduce, Bytes{8}, node});
  expect(*choice, "Ring", NcclProtocol::ll, 15e-6);
  EXPECT_EQ(choice->channels, 1);
}

TEST(NcclTuner, LargeAllReducesTakeTheSwitch) {
  // 370.8 x 0.85 x 15/16 x 2 x 8/14 = 337.692857 GB/s after 25 us.
  const auto choice = hopper().choose({CollectiveKind::all_reduce, Bytes{gib}, node});
  expect(*choice, "NVLS", NcclProtocol::simple, 25e-6 + gib / 337.692857e9);
  EXPECT_EQ(choice->channels, 16);
}

TEST(NcclTuner, WithoutTheSwitchARing) {
  // Six channels of 60 GB/s, each split in two and run twice: 24. 14 steps for 8 shares.
  const auto choice = hopper().choose({CollectiveKind::all_reduce, Bytes{gib}, node},
                                      parse_nccl_selection("^NVLS", ""));
  expect(*choice, "Ring", NcclProtocol::simple, (8.4 + 14 * 3.4) * 1e-6 + gib / (360e9 * 8 / 14));
  EXPECT_EQ(choice->channels, 24);
}

TEST(NcclTuner, SmallMessagesOverNodesTakeATree) {
  // 6.8 + 2 (7 x 0.6 + 1 x 5.0) = 25.2 us; a ring waits 6.6 + 28 x 0.6 + 2 x 2.7 = 28.8.
  const auto choice = hopper().choose({CollectiveKind::all_reduce, Bytes{8}, {16, 2, 8}});
  expect(*choice, "Tree", NcclProtocol::ll, 25.2e-6);
}

TEST(NcclTuner, LargeMessagesOverNodesTakeTheSwitchAndATree) {
  const auto choice = hopper("aws-p5").choose({CollectiveKind::all_reduce, Bytes{gib}, {16, 2, 8}});
  EXPECT_EQ(choice->algorithm->word(), "NVLSTree");
}

// Ampere: 12 links of 20 GB/s. Four NICs of 12.5 GB/s carry a channel of 12 GB/s each. Between two
// nodes trees may take twice that inside the nodes, 24, of which 92 % count and half is the
// algorithm's: 44.16 GB/s, LL128 up to 120/128 of them. A ring of 48 GB/s sends 30 of 16 shares.
TEST(NcclTuner, TwoNodesTakeTreesWhereNvlinkHasRoomForThem) {
  const NcclTuner p4d{read_system("aws-p4d", test_place), BytesPerSecond{240e9}};
  const GroupShape two{16, 2, 8}, four{32, 4, 8};
  const auto choice =
      p4d.choose({CollectiveKind::all_reduce, Bytes{gib}, two}, parse_nccl_selection("", "Simple"));
  // 8.4 us and 2 (7 x 4 + 14 us) before; the last 10 % of the size correction stay for large ones.
  expect(*choice, "Tree", NcclProtocol::simple, 92.4e-6 + gib / (0.9 * 44.16e9));
  EXPECT_EQ(p4d.choose({CollectiveKind::all_reduce, Bytes{gib}, four})->algorithm->word(), "Ring");
}

// Eight NICs of 25 GB/s carry 8 x 24 GB/s; eight channels of trees are capped at 23.6 GB/s each:
// 8 x 23.6 / 2 = 94.4 GB/s, less than the ring's 192 x 16/30 = 102.4. So on an A800, by its NVLink.
TEST(NcclTuner, TwoNodesTakeRingsWhereTreesAreCapped) {
  const NcclTuner dgx{read_system("dgx-a100-80gb", test_place), BytesPerSecond{240e9}};
  const auto choice = dgx.choose({CollectiveKind::all_reduce, Bytes{16 * gib}, {16, 2, 8}});
  EXPECT_EQ(choice->algorithm->word(), "Ring");
  EXPECT_EQ(choice->channels, 16);
}

TEST(NcclTuner, OneGpuANodeGathersByPat) {
  // 8 + log2(16) x 14 / 3.5 + 16 x 2.8 = 68.8 us; a ring of LL waits 6.6 + 15 x 5 = 81.6. Sixteen
  // bytes: a tenth of a nanosecond at most.
  const auto choice = hopper().choose({CollectiveKind::all_gather, Bytes{16}, {16, 16, 1}});
  expect(*choice, "PAT", NcclProtocol::simple, 68.8e-6);
}

TEST(NcclTuner, WhatDoesNotApplyIsNotChosen) {
  const auto allowed = parse_nccl_selection("CollnetDirect,CollnetChain,PAT", "");
  EXPECT_FALSE(hopper().choose({CollectiveKind::all_reduce, Bytes{gib}, node}, allowed));
  const auto ll128 = parse_nccl_selection("", "LL128");
  const NcclTuner pcie{read_system("l40s-pcie", test_place), BytesPerSecond{20e9}};
  EXPECT_FALSE(pcie.choose({CollectiveKind::all_reduce, Bytes{gib}, node}, ll128));
}

}  // namespace
}  // namespace orrery::nccl_tuner_test
