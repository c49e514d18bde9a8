#pragma once

#include <string>
#include <vector>

#include "sim/core/chart.hpp"

namespace orrery {

/// Whether less of a figure is better, by the unit in its name: of times, bytes, money, energy.
bool less_is_better(const std::string& figure);

/// The points that no other beats in one figure without losing in the other, by rising x. Of equal
/// ones the first.
std::vector<ChartPoint> pareto_frontier(std::vector<ChartPoint> points, bool less_x, bool less_y);

}  // namespace orrery
