#include "sim/profile/roofline.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "sim/profile/kernel_text.hpp"
#include "tests/support/golden.hpp"

namespace orrery::roofline_test {
namespace {

// 1000 TFLOP/s in bf16, 100 in fp32, 2 TB/s: ridges at 500 and 50 operations a byte.
MachineRoofs machine() {
  return {"a GPU",
          {{"bf16", FlopPerSecond{1000e12}}, {"fp32", FlopPerSecond{100e12}}},
          BytesPerSecond{2e12}};
}

// `share` of its roof, at so many operations a byte of 1 GB.
OperationPrice operation(const std::string& name, const std::string& kind, double ops_per_byte,
                         double peak, double share) {
  OperationPrice one;
  one.name = name;
  one.kind = kind;
  one.format = peak > 500e12 ? "bf16" : "fp32";
  one.roofs = {Flop{ops_per_byte * 1e9}, Bytes{1e9}, FlopPerSecond{peak}, BytesPerSecond{2e12}};
  one.time = one.roofs.least_time() / share;
  one.low = 0.9 * one.time;
  one.high = 1.1 * one.time;
  one.count = 10;
  return one;
}

OperationList operations() {
  OperationList list;
  list.roofs = machine();
  list.operations = {operation("fc1", "gemm", 2000.0, 1000e12, 0.8),
                     operation("attention", "attention", 700.0, 1000e12, 0.5),
                     operation("norm", "vector", 1.0, 100e12, 0.9)};
  OperationPrice reduce;
  reduce.name = "tp_reduce";
  reduce.kind = "network";
  reduce.on_network = true;
  reduce.roofs = {Flop{}, Bytes{1e9}, FlopPerSecond{}, BytesPerSecond{4.5e11}};
  reduce.time = microseconds(3000);
  list.operations.push_back(reduce);
  return list;
}

RooflineChart chart() { return {"a step", "of one rank", machine(), operations().operations}; }

TEST(Roofline, MatchesItsGolden) { expect_golden("charts/roofline.svg", roofline_svg(chart())); }

// The table has the letters of the plot; the collective has no place.
TEST(Roofline, TextMarksWhatHasAPlace) {
  const std::string text = roofline_text(chart());
  const std::string plot = text.substr(text.find("TFLOP/s\n"), text.find("+---") - 0);
  for (const char mark : {'a', 'b', 'c'})
    EXPECT_EQ(std::count_if(plot.begin(), plot.end(), [&](char c) { return c == mark; }) > 0, true);
  EXPECT_NE(text.find("bf16 1,000"), text.npos);
  EXPECT_NE(text.find("fp32 100"), text.npos);
  EXPECT_NE(text.find("2,000 GB/s"), text.npos);
}

// What reaches more of its roof stands higher, and none above it: marks move up to the roof's line
// and no further.
TEST(Roofline, MarksStandBelowTheirRoof) {
  const auto row_of = [](double share) {
    RooflineChart one{"t", "", machine(), {operation("x", "gemm", 2000.0, 1000e12, share)}};
    std::istringstream lines{roofline_text(one)};
    int row = 0, roof = -1, mark = -1;
    for (std::string line; std::getline(lines, line); ++row) {
      if (line.find("bf16") != line.npos) roof = row;
      const std::size_t bar = line.find('|');
      if (bar != line.npos && line.find('a', bar) != line.npos) mark = row;
    }
    EXPECT_GE(mark, roof);
    return mark - roof;
  };
  EXPECT_EQ(row_of(1.0), 0);
  EXPECT_GT(row_of(0.3), 0);
  EXPECT_GT(row_of(0.03), row_of(0.3));
}

TEST(Roofline, HasMarksForAsManyAsThereAreLetters) {
  EXPECT_EQ(roofline_mark(0), "a");
  EXPECT_EQ(roofline_mark(25), "z");
  EXPECT_EQ(roofline_mark(26), "A");
  EXPECT_EQ(roofline_mark(52), "*");
}

// 10 x (2000e9 / 0.8e15 + 700e9 / 0.5e15 + 1e9 / 1.8e12) = 25 + 14 + 5.56 ms, and 3 ms: 47.6.
TEST(Operations, SharesAreOfTheTimeOfAll) {
  const OperationList list = operations();
  EXPECT_EQ(bounds_text(list), "compute 82.0 %, memory 11.7 %, network 6.3 %");
  const std::string text = operations_text(list);
  EXPECT_NE(text.find("52.6 %"), text.npos) << text;
  EXPECT_NE(text.find("47.556 ms"), text.npos) << text;
}

TEST(Operations, CsvHasAsManyCellsInEveryLine) {
  std::istringstream lines{operations_csv(operations())};
  std::string header;
  std::getline(lines, header);
  const auto cells = std::count(header.begin(), header.end(), ',');
  int rows = 0;
  for (std::string line; std::getline(lines, line); ++rows)
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), cells) << line;
  EXPECT_EQ(rows, 4);
}

}  // namespace
}  // namespace orrery::roofline_test
