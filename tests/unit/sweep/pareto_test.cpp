#include <gtest/gtest.h>

#include <algorithm>

#include "sim/sweep/best_rows.hpp"

namespace orrery::pareto_test {
namespace {

// The definition: no other point is at least as good in both figures and better in one; of equal
// points the first stays.
bool is_on_frontier(const std::vector<ChartPoint>& points, std::size_t i, bool less_x,
                    bool less_y) {
  const double sx = less_x ? 1 : -1, sy = less_y ? 1 : -1;
  for (std::size_t j = 0; j < points.size(); ++j) {
    const double dx = sx * (points[j].x - points[i].x), dy = sy * (points[j].y - points[i].y);
    if (dx <= 0 && dy <= 0 && (dx < 0 || dy < 0 || j < i)) return false;
  }
  return true;
}

// All sets of four points on a grid of 3 x 3, in all directions.
TEST(Pareto, FrontierIsNotDominated) {
  for (int code = 0; code < 9 * 9 * 9 * 9; ++code) {
    std::vector<ChartPoint> points;
    for (int rest = code, i = 0; i < 4; ++i, rest /= 9)
      points.push_back(
          {static_cast<double>(rest % 3), static_cast<double>(rest / 3 % 3), std::to_string(i)});
    for (const bool less_x : {true, false})
      for (const bool less_y : {true, false}) {
        std::vector<std::string> expected, found;
        for (std::size_t i = 0; i < 4; ++i)
          if (is_on_frontier(points, i, less_x, less_y)) expected.push_back(points[i].name);
        const std::vector<ChartPoint> frontier = pareto_frontier(points, less_x, less_y);
        for (const ChartPoint& point : frontier) found.push_back(point.name);
        EXPECT_TRUE(std::is_sorted(frontier.begin(), frontier.end(),
                                   [](const auto& a, const auto& b) { return a.x < b.x; }));
        std::sort(found.begin(), found.end());
        ASSERT_EQ(found, expected) << code << " " << less_x << less_y;
      }
  }
}

TEST(Pareto, FiguresKnowTheirDirection) {
  for (const char* less : {"step_time_s", "memory_peak_bytes", "breakdown_pp_bubble_s", "rent_usd"})
    EXPECT_TRUE(less_is_better(less)) << less;
  for (const char* more : {"tokens_per_s", "tokens_per_s_per_gpu", "mfu", "model_tflops_per_gpu"})
    EXPECT_FALSE(less_is_better(more)) << more;
}

}  // namespace
}  // namespace orrery::pareto_test
