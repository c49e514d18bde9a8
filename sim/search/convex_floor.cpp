#include "sim/search/convex_floor.hpp"

#include <algorithm>
#include <cassert>

namespace orrery {
namespace {

double rise(const TimePoint& from, const TimePoint& to) {
  return (to.time - from.time).si() / static_cast<double>(to.at - from.at);
}

// The lower convex hull (Andrew's monotone chain, 1979).
std::vector<TimePoint> lower_hull(const std::vector<TimePoint>& points) {
  std::vector<TimePoint> hull;
  for (const TimePoint& point : points) {
    while (hull.size() > 1 && rise(hull[hull.size() - 2], hull.back()) >= rise(hull.back(), point))
      hull.pop_back();
    hull.push_back(point);
  }
  return hull;
}

}  // namespace

ConvexFloor::ConvexFloor(const std::vector<TimePoint>& points) {
  assert(!points.empty());
  Seconds least = points.front().time;
  Seconds ray = (1.0 / static_cast<double>(points.front().at)) * points.front().time;
  for (const TimePoint& point : points) {
    assert(point.at > 0);
    least = std::min(least, point.time);
    ray = std::min(ray, (1.0 / static_cast<double>(point.at)) * point.time);
  }
  lines_ = {{least, Seconds{}}, {Seconds{}, ray}};
  const std::vector<TimePoint> hull = lower_hull(points);
  for (std::size_t i = 1; i < hull.size(); ++i) {
    const Seconds slope{rise(hull[i - 1], hull[i])};
    const Seconds start = hull[i].time - static_cast<double>(hull[i].at) * slope;
    if (slope >= Seconds{} && start >= Seconds{}) lines_.push_back({start, slope});
  }
}

Seconds ConvexFloor::sum(double calls, double amount) const {
  Seconds most;
  for (const Line& line : lines_) most = std::max(most, calls * line.start + amount * line.slope);
  return most;
}

}  // namespace orrery
