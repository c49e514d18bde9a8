#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/training/result.hpp"

namespace orrery {

/// Numbers of an estimate in SI units, under the names that orrery.result/1 has for them
/// (docs/reference/json.md). Columns of sweeps are called after them.
using NamedNumbers = std::vector<std::pair<std::string, double>>;

NamedNumbers step_figures(const Result& result);             ///< "step_time_s", "mfu".
NamedNumbers breakdown_figures(const Breakdown& breakdown);  ///< "compute", "pp_bubble": seconds.
NamedNumbers provenance_figures(const Result& result);       ///< "measured": shares.
/// "rent_usd", "power_w": prices and powers of a whole training.
std::vector<std::pair<std::string, Range>> bill_ranges(const Bill& bill);

/// Times, whose names end in "_s", are whole nanoseconds; other numbers have 9 significant digits.
double rounded_figure(const std::string& name, double value);

}  // namespace orrery
