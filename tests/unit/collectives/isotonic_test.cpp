#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/collectives/collective_sweeps.hpp"
#include "sim/collectives/collective_time.hpp"
#include "sim/measurements/collective_curves.hpp"

namespace orrery::isotonic_test {
namespace {

using Values = std::vector<double>;

double distance(const Values& one, const Values& other) {
  double sum = 0.0;
  for (std::size_t i = 0; i < one.size(); ++i) sum += std::abs(one[i] - other[i]);
  return sum;
}

// The least distance of a sequence of values of `from` that never falls. Some best one consists of
// such values: between two of them the distance is linear.
double least_distance(const Values& from, std::size_t at = 0, double floor = -1e9) {
  if (at == from.size()) return 0.0;
  double least = 1e9;
  for (const double value : from)
    if (value >= floor)
      least = std::min(least, std::abs(value - from[at]) + least_distance(from, at + 1, value));
  return least;
}

TEST(NeverFalling, RisingValuesStay) {
  EXPECT_EQ(never_falling({}), Values{});
  EXPECT_EQ(never_falling({1, 2, 2, 5}), (Values{1, 2, 2, 5}));
}

TEST(NeverFalling, AnOutlierMovesNothingElse) {
  EXPECT_EQ(never_falling({3, 9, 3, 4, 5}), (Values{3, 3, 3, 4, 5}));
  EXPECT_EQ(never_falling({3, 9, 3.5, 3, 5}), (Values{3, 3.5, 3.5, 3.5, 5}));
}

// All sequences of five values out of five.
TEST(NeverFalling, NothingElseIsNearer) {
  for (int number = 0; number < 3125; ++number) {
    Values values;
    for (int rest = number, i = 0; i < 5; ++i, rest /= 5) values.push_back(rest % 5);
    const Values rising = never_falling(values);
    EXPECT_TRUE(std::is_sorted(rising.begin(), rising.end())) << number;
    EXPECT_DOUBLE_EQ(distance(rising, values), least_distance(values)) << number;
  }
}

// Of every curve that we ship, at its sizes and between them.
TEST(NeverFalling, ALargerMessageTakesNoLessTime) {
  for (const char* name :
       {"dgx-a100-80gb", "dgx-h100", "dgx-h200", "dgx-b200", "dgx-b300", "gb200-nvl72"}) {
    const System system = read_system(name, {});
    const CollectiveTime price{system};
    for (const CollectiveKind kind :
         {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
          CollectiveKind::all_to_all, CollectiveKind::send_recv})
      for (const int ranks : {2, 4, 8}) {
        if (ranks > system.gpus_per_node || (kind == CollectiveKind::send_recv && ranks > 2))
          continue;
        // Four lie between what was measured, and follow both neighbours' distances from a formula.
        const double slack = ranks == 4 ? 0.01 : 1e-9;
        Seconds before;
        for (double bytes = 1024.0; bytes <= 1 << 30; bytes *= std::sqrt(2.0)) {
          const Seconds time = price(kind, Bytes{std::round(bytes)}, {ranks, 1, ranks}).time();
          EXPECT_GE(time.si(), (1.0 - slack) * before.si())
              << name << " " << ranks << " ranks, " << bytes << " bytes";
          before = time;
        }
      }
  }
}

}  // namespace
}  // namespace orrery::isotonic_test
