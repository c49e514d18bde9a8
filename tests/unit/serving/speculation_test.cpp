#include "sim/serving/speculation.hpp"

#include <gtest/gtest.h>

#include "tests/support/error_text.hpp"

namespace orrery::speculation_test {
namespace {

const Place place{"", "--speculate"};

TEST(Speculation, ReadsWhatItWrites) {
  for (const char* text :
       {"mtp:1@0.8", "eagle3:3@0.66/0.39/0.24", "draft:llama3.1-8b:4@0.6", "ngram:5@0.25"}) {
    const Speculation speculation = parse_speculation(text, place);
    EXPECT_EQ(speculation_text(speculation), text);
    EXPECT_EQ(parse_speculation(speculation_text(speculation), place), speculation);
  }
}

// 1 and what is accepted of each position: InferenceX's SPEED-Bench says 2.39 for two drafts.
TEST(Speculation, AStepBringsTheSureTokenAndThoseThatAreAccepted) {
  EXPECT_DOUBLE_EQ(parse_speculation("mtp:2@0.7", place).a_step(), 2.4);
  EXPECT_DOUBLE_EQ(parse_speculation("eagle3:3@0.66/0.39/0.24", place).a_step(), 2.29);
  EXPECT_EQ(parse_speculation("eagle3:3@0.66/0.39/0.24", place).most_a_step(), 3);
  EXPECT_EQ(parse_speculation("mtp:3@1", place).most_a_step(), 4);
  EXPECT_EQ(parse_speculation("mtp:3@0", place).most_a_step(), 1);
}

TEST(Speculation, KnowsWhatDrafts) {
  const Model deepseek = read_model("deepseek-v3", place);
  const auto layer = drafting_model(deepseek, parse_speculation("mtp:1@0.8", place), place);
  EXPECT_EQ(layer->layers, 1);
  EXPECT_EQ(layer->experts->count, 256);
  const Model oss = read_model("gpt-oss-120b", place);
  const auto head = drafting_model(oss, parse_speculation("eagle3:1@0.8", place), place);
  EXPECT_FALSE(head->experts);
  EXPECT_EQ(head->ffn, 4 * 2880);
  EXPECT_EQ(drafting_model(oss, parse_speculation("ngram:1@0.8", place), place), nullptr);
  EXPECT_NE(error_text([&] {
              drafting_model(oss, parse_speculation("mtp:1@0.8", place), place);
            }).find("no layer for further tokens"),
            std::string::npos);
}

}  // namespace
}  // namespace orrery::speculation_test
