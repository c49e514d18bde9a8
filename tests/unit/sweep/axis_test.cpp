#include <gtest/gtest.h>

#include "sim/sweep/sweep.hpp"
#include "tests/support/error_text.hpp"

namespace orrery::axis_test {
namespace {

const Place at{"", "--sweep"};

std::string texts(const Axis& axis) {
  std::string all;
  for (const AxisValue& value : axis.values) all += (all.empty() ? "" : " ") + value.text;
  return all;
}

std::string values(const std::string& key, const std::string& text) {
  return texts(parse_axis(key, text, at));
}

TEST(Axis, ReadsListsAndRanges) {
  EXPECT_EQ(values("gbs", "256..8192*2"), "256 512 1024 2048 4096 8192");
  EXPECT_EQ(values("gbs", "1..100*10"), "1 10 100");
  EXPECT_EQ(values("gbs", "1..99*10"), "1 10");
  EXPECT_EQ(values("gpus", "8..64+8"), "8 16 24 32 40 48 56 64");
  EXPECT_EQ(values("gpus", "8..30+8"), "8 16 24");
  EXPECT_EQ(values("gpus", "8..64"), "8 16 32 64");
  EXPECT_EQ(values("gbs", "256..1024"), "256 512 1024");
  EXPECT_EQ(values("vpp", "1..4"), "1 2 3 4");
  EXPECT_EQ(values("vpp", "3..3"), "3");
  EXPECT_EQ(values("tp", "1,2,4"), "1 2 4");
  EXPECT_EQ(values("tp", "1,4..8*2,16"), "1 4 8 16");
  EXPECT_EQ(values("recompute", "none,full"), "none full");
  EXPECT_EQ(values("sp", "true,false"), "true false");
  EXPECT_EQ(values("schedule", "1f1b"), "1f1b");
  EXPECT_EQ(values("model", "../mine/config.json,gpt3-175b"), "../mine/config.json gpt3-175b");
}

// Against a loop that is written the other way round.
TEST(Axis, EveryRangeOfSmallNumbersHasItsValues) {
  for (int first = 1; first <= 6; ++first)
    for (int last = first; last <= 20; ++last)
      for (int step = 1; step <= 5; ++step) {
        std::string sums, products;
        for (int value = 1; value <= last; ++value) {
          if (value >= first && (value - first) % step == 0)
            sums += (sums.empty() ? "" : " ") + std::to_string(value);
          for (int power = first; step > 1 && power <= value; power *= step)
            if (power == value) products += (products.empty() ? "" : " ") + std::to_string(value);
        }
        const std::string range = std::to_string(first) + ".." + std::to_string(last);
        EXPECT_EQ(values("gbs", range + "+" + std::to_string(step)), sums);
        if (step > 1) {
          EXPECT_EQ(values("gbs", range + "*" + std::to_string(step)), products);
        }
      }
}

TEST(Axis, ReadsJson) {
  const auto read = [](const std::string& key, const std::string& json) {
    return texts(read_axis(key, JsonValue::parse(json, "sweep.json")));
  };
  EXPECT_EQ(read("tp", "8"), "8");
  EXPECT_EQ(read("tp", "[1, 2, \"4..8*2\"]"), "1 2 4 8");
  EXPECT_EQ(read("tp", "\"1..8*2\""), "1 2 4 8");
  EXPECT_EQ(read("sp", "[true, false]"), "true false");
  EXPECT_EQ(read("dtype", "[\"bf16\", \"fp8\"]"), "bf16 fp8");
}

TEST(Axis, HasAKindForConditions) {
  EXPECT_EQ(parse_axis("tp", "8", at).values[0].operand().number, 8.0);
  EXPECT_EQ(parse_axis("sp", "true", at).values[0].operand().kind, Operand::Kind::truth);
  EXPECT_EQ(*parse_axis("model", "x", at).values[0].operand().text, "x");
}

TEST(Axis, KeysStandInTheOrderOfColumns) {
  EXPECT_EQ(axis_keys()[0], "model");
  EXPECT_EQ(axis_keys()[1], "system");
  EXPECT_EQ(axis_keys()[2], "gpus");
  EXPECT_EQ(axis_keys()[3], "calibration");
  EXPECT_EQ(axis_keys()[4], "tp");
}

TEST(Axis, RefusesWhatCannotBeMeant) {
  const auto error = [](const std::string& key, const std::string& text) {
    return error_text([&] { parse_axis(key, text, at); });
  };
  EXPECT_EQ(error("gbss", "8"),
            "--sweep: 'gbss' is not a key that can be swept; did you mean 'gbs'?");
  EXPECT_EQ(error("gbs", "8..4"),
            "--sweep: '8..4' ends before it begins; write a range as 256..8192*2 or 8..64+8");
  EXPECT_EQ(error("gbs", "8..64*1"),
            "--sweep: '8..64*1' has no step that goes on; write a range as 256..8192*2 or 8..64+8");
  EXPECT_EQ(error("gbs", "8..64+0"),
            "--sweep: '8..64+0' has no step that goes on; write a range as 256..8192*2 or 8..64+8");
  EXPECT_EQ(error("gbs", "8..x"),
            "--sweep: '8..x' has no whole number behind its dots; write a range as 256..8192*2 or "
            "8..64+8");
  EXPECT_EQ(error("gbs", "0..8*2"),
            "--sweep: '0..8*2' never leaves its beginning; write a range as 256..8192*2 or "
            "8..64+8");
  EXPECT_EQ(error("gbs", "1..1000000+1"),
            "--sweep: a range has 1000000 values, more than 64; use a larger step");
  EXPECT_EQ(error("gbs", "1..65+1"),
            "--sweep: a range has 65 values, more than 64; use a larger step, or add --yes if it "
            "is meant");
  EXPECT_EQ(parse_axis("gbs", "1..64+1", at).values.size(), 64u);
  EXPECT_EQ(parse_axis("gbs", "1..65+1", at, most_with_yes).values.size(), 65u);
  EXPECT_EQ(error("gbs", "1,,2"),
            "--sweep: has an empty value; write values with one comma between");
  EXPECT_EQ(error("gbs", "1,2,1"), "--sweep: has the value '1' twice; keep one of them");
  EXPECT_EQ(error("gbs", "0,1"),
            "--sweep: 0 is out of range; write a whole number from 1 to 1073741824");
  EXPECT_EQ(error("recompute", "none,ful"), "--sweep: 'ful' is unknown; did you mean 'full'?");
}

}  // namespace
}  // namespace orrery::axis_test
