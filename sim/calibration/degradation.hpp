#pragma once

#include <string>

#include "sim/calibration/curve.hpp"

namespace orrery {

/// What makes a run look degraded: among large sizes, bus bandwidth that falls as they grow, which
/// no healthy fabric shows. "" where it does not.
std::string degradation(const Curve& curve);

}  // namespace orrery
