#include "sim/sweep/pareto.hpp"

#include <algorithm>

namespace orrery {

bool less_is_better(const std::string& figure) {
  for (const std::string unit : {"_bytes", "_usd", "_kwh"})
    if (figure.ends_with(unit)) return true;
  return figure.ends_with("_s") && !figure.ends_with("per_s");
}

// Sorted by the first figure, best first, a point is on the frontier if it improves on the second.
std::vector<ChartPoint> pareto_frontier(std::vector<ChartPoint> points, bool less_x, bool less_y) {
  const auto better = [](double a, double b, bool less) { return less ? a < b : a > b; };
  std::stable_sort(points.begin(), points.end(), [&](const ChartPoint& a, const ChartPoint& b) {
    return a.x != b.x ? better(a.x, b.x, less_x) : better(a.y, b.y, less_y);
  });
  std::vector<ChartPoint> frontier;
  for (const ChartPoint& point : points)
    if (frontier.empty() || better(point.y, frontier.back().y, less_y)) frontier.push_back(point);
  std::sort(frontier.begin(), frontier.end(),
            [](const ChartPoint& a, const ChartPoint& b) { return a.x < b.x; });
  return frontier;
}

}  // namespace orrery
