#include "sim/reliability/run_policy.hpp"

#include <gtest/gtest.h>

#include "tests/support/error_text.hpp"

namespace orrery::run_policy_test {
namespace {

const Place at{"--checkpoint", ""};

std::string refusal(const std::string& text) {
  return error_text([&] { parse_checkpoints(text, at); });
}

TEST(Checkpoints, AreSortedByWhatTheyLose) {
  const auto rules = parse_checkpoints("store:10min,peer:1step,local:2 steps", at);
  ASSERT_EQ(rules.size(), 3u);
  EXPECT_EQ(rules[0].tier, CheckpointTier::local);
  EXPECT_EQ(rules[0].steps, 2);
  EXPECT_EQ(rules[1].tier, CheckpointTier::peer);
  EXPECT_EQ(rules[1].steps, 1);
  EXPECT_EQ(rules[2].every, Seconds{600});
}

TEST(Checkpoints, WithoutAPlaceGoToTheStore) {
  EXPECT_EQ(parse_checkpoints("1.5 h", at)[0].every, Seconds{5400});
  EXPECT_EQ(parse_checkpoints("1.5 h", at)[0].tier, CheckpointTier::store);
  EXPECT_TRUE(parse_checkpoints("best", at)[0].best());
}

TEST(Checkpoints, SayWhatTheyAreNot) {
  EXPECT_EQ(refusal("stor:1h"),
            "--checkpoint: 'stor' is no place for a checkpoint; did you mean 'store'?");
  EXPECT_EQ(refusal("10"),
            "--checkpoint: '10' has no known unit; use s, min, h, d, weeks or months");
  EXPECT_EQ(refusal("0s"),
            "--checkpoint: '0s' is no interval; write it like store:10min,peer:1step");
  EXPECT_EQ(refusal("1.5steps"),
            "--checkpoint: '1.5steps' is no number of steps; write it like store:10min,peer:1step");
  EXPECT_EQ(refusal("store:1h,2h"), "--checkpoint: names 'store' twice; keep one of them");
  EXPECT_EQ(refusal("peer:1step"),
            "--checkpoint: keeps nothing that outlives every failure; add store:1h");
}

}  // namespace
}  // namespace orrery::run_policy_test
