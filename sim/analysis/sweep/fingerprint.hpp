#pragma once

#include <string>

#include "sim/analysis/grid/sweep.hpp"

namespace orrery {

/// Sixteen hexadecimal digits that stand for `text` (FNV-1a, 64 bits): good against mistakes, not
/// against forgery.
std::string fingerprint_of(const std::string& text);

/// The same for all that an answer depends on beside the sweep itself: this program's file, the
/// catalog and the calibration, and every file that is read where the sweep names one by its path:
/// models, systems, software, schedules, routings and their traces, prices.
/// Errors (bad_input): a file that cannot be read.
std::string fingerprint_of_inputs(const Sweep& sweep);

}  // namespace orrery
