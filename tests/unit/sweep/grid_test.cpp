#include "sim/sweep/grid.hpp"

#include <gtest/gtest.h>

#include <string>

#include "sim/sweep/shard_file.hpp"
#include "tests/support/error_text.hpp"

namespace orrery::grid_test {
namespace {

const Place at{"", "--where"};

Sweep sweep_of(const std::string& axes, const std::string& condition = "",
               const std::string& zip = "") {
  SweepBuilder builder;
  builder.allow_long_ranges();
  builder.add_axes("model=m system=s " + axes, at);
  if (!zip.empty()) builder.add_zip(zip, at);
  if (!condition.empty()) builder.add_conditions(condition, at);
  return builder.sweep();
}

// "gbs mbs ..." of every point, by its number.
std::string points(const Sweep& sweep) {
  const Grid grid{sweep};
  std::string text;
  for (std::int64_t number = 0; number < grid.combinations(); ++number) {
    if (!grid.is_point(number)) continue;
    text += (text.empty() ? "" : " ") + std::to_string(number) + ":";
    const std::vector<const AxisValue*> values = grid.values(number);
    for (std::size_t i = 2; i < values.size(); ++i) text += (i > 2 ? "," : "") + values[i]->text;
  }
  return text;
}

TEST(Grid, TheLastDimensionVariesFastest) {
  EXPECT_EQ(points(sweep_of("gpus=8 gbs=8,16 tp=1,2")), "0:8,1,8 1:8,1,16 2:8,2,8 3:8,2,16");
  // However it is written down.
  EXPECT_EQ(points(sweep_of("tp=1,2 gpus=8 gbs=8,16")), points(sweep_of("gpus=8 gbs=8,16 tp=1,2")));
}

TEST(Grid, ZippedAxesMoveTogether) {
  EXPECT_EQ(points(sweep_of("tp=1,2", "", "gbs=64,128 gpus=8,16")),
            "0:8,64,1 1:8,64,2 2:16,128,1 3:16,128,2");
}

TEST(Grid, APointKeepsItsNumber) {
  EXPECT_EQ(points(sweep_of("gpus=8 gbs=8,16 tp=1,2,4", "tp*gbs <= 16")),
            "0:8,1,8 1:8,1,16 2:8,2,8");
  EXPECT_EQ(points(sweep_of("gpus=8 gbs=8,16 tp=1,2,4", "gbs > 8 and tp > 1")),
            "3:8,2,16 5:8,4,16");
}

// tp x pp over 1 .. 8: every bound has as many points as a double loop counts.
TEST(Grid, CountsWhatAConditionLeaves) {
  for (int most = 1; most <= 64; ++most) {
    std::int64_t expected = 0;
    for (int tp = 1; tp <= 8; ++tp)
      for (int pp = 1; pp <= 8; ++pp) expected += tp * pp <= most;
    const Sweep sweep =
        sweep_of("gpus=64 gbs=8 tp=1..8+1 pp=1..8+1", "tp*pp <= " + std::to_string(most));
    EXPECT_EQ(Grid{sweep}.count_points(), expected) << most;
  }
}

TEST(Grid, KnowsWhatIsLeftOut) {
  // mbs and cp are 1 where they are no axes, dp is what is left of the GPUs.
  EXPECT_EQ(points(sweep_of("gpus=16 gbs=8 tp=1,2,4,8", "dp >= 4 and cp == mbs")),
            "0:16,1,8 1:16,2,8 2:16,4,8");
  EXPECT_EQ(points(sweep_of("dp=2,4 gbs=8 tp=1,2", "dp*tp == 4")), "1:1,4,8 2:2,2,8");
  EXPECT_EQ(error_text([] { Grid{sweep_of("gpus=8 gbs=8", "seq > 1024")}; }),
            "--where: the condition needs 'seq', which the sweep leaves open; add --seq, or an "
            "axis");
  EXPECT_EQ(error_text([] { Grid{sweep_of("gpus=8 gbs=8", "tpp > 1")}; }),
            "--where: 'tpp' in the condition is not a key of a sweep; did you mean 'tp'?");
}

TEST(Grid, SaysWhichConditionsLeaveNothing) {
  const auto error = [](const std::string& condition) {
    return error_text([&] {
      const Sweep sweep = sweep_of("gpus=64 gbs=8 tp=1..8*2 pp=1..8*2", condition);
      Grid{sweep}.count_points();
    });
  };
  EXPECT_EQ(error("tp > 1 and tp > 8 and pp > 1"),
            "--where: the condition 'tp > 8' excludes all 16 combinations; change it, or the axes' "
            "values");
  EXPECT_EQ(error("pp <= 4 and tp*pp >= 32 and tp <= 4"),
            "--where: the conditions 'pp <= 4', 'tp*pp >= 32' and 'tp <= 4' contradict each other: "
            "together they exclude all 16 combinations; change one of them, or the axes' values");
  // What is not needed for the contradiction is not named.
  EXPECT_EQ(error("pp >= 2 and tp*pp < 16 and pp > 4 and tp >= 2"),
            "--where: the conditions 'tp*pp < 16', 'pp > 4' and 'tp >= 2' contradict each other: "
            "together they exclude all 16 combinations; change one of them, or the axes' values");
}

TEST(Grid, RefusesWhatIsTooLarge) {
  EXPECT_EQ(error_text([] { Grid{sweep_of("gpus=8 gbs=1..20000+1 tp=1..20000+1")}; }),
            "the sweep has more than 100 million combinations; shorten an axis, or use larger "
            "steps");
}

TEST(Shard, SharesAreAllPoints) {
  for (int points = 0; points <= 30; ++points)
    for (int of = 1; of <= 10; ++of) {
      std::int64_t sum = 0;
      for (int i = 0; i < of; ++i) {
        std::int64_t own = 0;
        for (int p = 0; p < points; ++p) own += p % of == i;
        EXPECT_EQ((Shard{i, of}.share(points)), own);
        sum += own;
      }
      EXPECT_EQ(sum, points);
    }
}

}  // namespace
}  // namespace orrery::grid_test
