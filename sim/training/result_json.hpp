#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "sim/layers/memory.hpp"
#include "sim/plan/scenario.hpp"
#include "sim/training/result.hpp"

namespace orrery {

/// The files that a scenario was made of: {"models": {NAME: ...}, "systems", "software",
/// "calibrations", "schedules"}, each in its file's format. Parts without a file are left out.
nlohmann::ordered_json inputs_json(const Scenario& scenario);

/// The object under "memory" in a result: bytes by stage and part, the peak and the capacity.
nlohmann::ordered_json memory_json(const MemoryReport& memory);

struct ResultJsonOptions {
  /// Include the program's version and the simulation's wall time. Without them the same scenario
  /// gives the same bytes.
  bool about_this_run = true;
  /// Include inputs_json(), so that the object needs no catalog.
  bool inputs = true;
};

/// `result` as "orrery.result/1" (docs/reference/json.md lists the keys): units in the keys, order
/// fixed, times in whole nanoseconds, whole bytes, other numbers with 9 significant digits. The
/// object under "plan" is a valid plan file, and so is the whole.
std::string result_json(const Result& result, const ResultJsonOptions& options = {});

}  // namespace orrery
