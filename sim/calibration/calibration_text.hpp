#pragma once

#include <string>
#include <vector>

#include "sim/calibration/assessment.hpp"
#include "sim/calibration/fit.hpp"

namespace orrery {

/// What a calibration holds, how well each table is predicted by its formula and by its other rows,
/// which rows nobody predicts, and which common shapes no row is near.
std::string calibration_text(const Calibration& calibration,
                             const std::vector<AssessedTable>& tables);

/// What a fit was held against, and what it left out; empty where there is neither.
std::string fit_text(const CalibrationFit& fit);

/// Achieved over predicted rates of all rows, each predicted from the others: an SVG document.
/// Errors (bad_input): no kernels were measured.
std::string calibration_chart(const Calibration& calibration,
                              const std::vector<AssessedTable>& tables);

}  // namespace orrery
