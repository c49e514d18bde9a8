#pragma once

#include <string>

#include "sim/training/result.hpp"

namespace orrery {

struct ResultJsonOptions {
  /// With what concerns this run and not the answer: the program's version and the time it took.
  /// Without it the same scenario gives the same bytes.
  bool about_this_run = true;
  /// With what the scenario was made of, so that the object stands alone.
  bool inputs = true;
};

/// `result` as "orrery.result/1" (docs/JSON.md lists the keys), units in the keys, always in the
/// same order. Times are whole nanoseconds, bytes whole, other numbers have 9 significant digits.
/// The object under "plan" can be given back as a plan file, and so can the whole, which needs no
/// catalog.
std::string result_json(const Result& result, const ResultJsonOptions& options = {});

}  // namespace orrery
