#pragma once

#include <string>

#include "sim/calibration/fit.hpp"

namespace orrery {

/// The document of schema orrery.calibration/1 (docs/FITTING.md), a measured row a line. It
/// reads back as what it was made from: constants have four digits, errors four decimals.
std::string calibration_json(const CalibrationFit& fit);

}  // namespace orrery
