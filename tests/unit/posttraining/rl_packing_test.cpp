#include "sim/posttraining/rl_packing.hpp"

#include <gtest/gtest.h>

namespace orrery::rl_packing_test {
namespace {

std::vector<Sample> of_tokens(const std::vector<std::uint32_t>& tokens) {
  std::vector<Sample> samples;
  for (const std::uint32_t length : tokens) samples.push_back({1, length - 1});
  return samples;
}

PackingRule rule_of(SamplePacking packing, std::int64_t tokens, int ranks) {
  PackingRule rule;
  rule.packing = packing;
  rule.tokens = rule.longest = tokens;
  rule.ranks = ranks;
  return rule;
}

// Bins of 10 from 6 5 4 4 1: {6 4} {5 4 1}; a rank has both, so that all of its tokens count, and
// the squares are those of the samples: (36 + 25 + 16 + 16 + 1) / 20.
TEST(RlPacking, BinsHoldWholeSamplesFirstFitLongestFirst) {
  const MicroBatches one =
      pack_samples(of_tokens({4, 6, 1, 5, 4}), 5, rule_of(SamplePacking::bins, 10, 1));
  EXPECT_EQ(one.count, 2);
  EXPECT_DOUBLE_EQ(one.tokens, 10.0);
  EXPECT_DOUBLE_EQ(one.attended, 94.0 / 20.0);
  EXPECT_DOUBLE_EQ(one.useful, 1.0);
}

// Three bins of two ranks, {9} {8} {7}: the first rank has 9 and 7, the other one 8 and an empty
// one, so that others wait for 16 of the 24 tokens on each rank.
TEST(RlPacking, RanksWithFewerBinsWait) {
  const MicroBatches two =
      pack_samples(of_tokens({7, 8, 9}), 3, rule_of(SamplePacking::bins, 10, 2));
  EXPECT_EQ(two.count, 2);
  EXPECT_DOUBLE_EQ(two.tokens, 8.0);
  EXPECT_DOUBLE_EQ(two.useful, 24.0 / 32.0);
}

TEST(RlPacking, BinsOfAPipelineAreAsLongAsTheLongest) {
  PackingRule rule = rule_of(SamplePacking::bins, 10, 1);
  rule.equal_bins = true;
  const MicroBatches one = pack_samples(of_tokens({9, 6, 7}), 3, rule);
  EXPECT_EQ(one.count, 3);
  EXPECT_DOUBLE_EQ(one.tokens, 9.0);
  EXPECT_DOUBLE_EQ(one.useful, 22.0 / 27.0);
}

TEST(RlPacking, PaddedMicroBatchesAreAsLongAsAnySampleMayBe) {
  PackingRule rule = rule_of(SamplePacking::padded, 0, 2);
  rule.longest = 16;
  rule.samples = 2;
  const MicroBatches two = pack_samples(of_tokens({4, 4, 4, 4, 4, 4, 4, 4}), 8, rule);
  EXPECT_EQ(two.count, 2);
  EXPECT_DOUBLE_EQ(two.tokens, 32.0);
  EXPECT_DOUBLE_EQ(two.attended, 16.0);
  EXPECT_DOUBLE_EQ(two.useful, 0.25);
}

// Of samples of one length every rule makes equal micro-batches, whatever ranks wait for.
TEST(RlPacking, EqualSamplesWasteNothing) {
  const auto samples = of_tokens(std::vector<std::uint32_t>(64, 32));
  for (const SamplePacking packing :
       {SamplePacking::bins, SamplePacking::balanced, SamplePacking::fixed})
    for (const int ranks : {1, 2, 4, 8})
      for (const bool meets_each : {false, true})
        for (const std::int64_t batch : {16, 64}) {
          PackingRule rule = rule_of(packing, 64, ranks);
          rule.samples = 2;
          rule.square = 100.0;
          rule.meets_each = meets_each;
          const MicroBatches all = pack_samples(samples, batch, rule);
          EXPECT_EQ(all.count, batch / ranks / 2) << name(packing) << " " << ranks;
          EXPECT_DOUBLE_EQ(all.tokens, 64.0);
          EXPECT_DOUBLE_EQ(all.attended, 32.0);
          EXPECT_DOUBLE_EQ(all.useful, 1.0);
        }
}

// Whatever the rule, no token is lost: what ranks compute or wait for is at least the samples, and
// more is waited for where ranks meet in each micro-batch.
TEST(RlPacking, WaitingForEachMicroBatchIsNeverShorter) {
  std::vector<std::uint32_t> lengths;
  for (std::uint32_t i = 0; i < 128; ++i) lengths.push_back(1 + (i * 37) % 61 * (i % 5 + 1));
  for (const SamplePacking packing :
       {SamplePacking::bins, SamplePacking::balanced, SamplePacking::fixed})
    for (const int ranks : {1, 2, 4, 8}) {
      PackingRule rule = rule_of(packing, 320, ranks);
      rule.samples = 4;
      rule.square = 200.0;
      const MicroBatches once = pack_samples(of_tokens(lengths), 64, rule);
      rule.meets_each = true;
      const MicroBatches each = pack_samples(of_tokens(lengths), 64, rule);
      EXPECT_LE(once.useful, 1.0 + 1e-12);
      const auto work = [&](const MicroBatches& all) {
        return static_cast<double>(all.count) * all.tokens * (1.0 + all.attended / rule.square);
      };
      EXPECT_GE(work(each), work(once) * (1.0 - 1e-12)) << name(packing) << " " << ranks;
    }
}

TEST(RlPacking, BalancedMicroBatchesKeepToTheirTokens) {
  // 24 tokens a rank in micro-batches of at most 12 are two, and balanced ones are equal.
  const MicroBatches all =
      pack_samples(of_tokens({9, 3, 8, 4, 7, 5, 6, 6}), 8, rule_of(SamplePacking::balanced, 12, 2));
  EXPECT_EQ(all.count, 2);
  EXPECT_DOUBLE_EQ(all.tokens, 12.0);
}

}  // namespace
}  // namespace orrery::rl_packing_test
