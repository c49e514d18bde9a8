#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "sim/layers/memory.hpp"
#include "sim/plan/scenario.hpp"
#include "sim/training/result.hpp"

namespace orrery {

/// What a scenario was made of: {"models": {NAME: ...}, "systems", "software", "calibrations",
/// "schedules"}, each in the format of the file that it was read from. What was not read is left
/// out.
nlohmann::ordered_json inputs_json(const Scenario& scenario);

/// What a result says under "memory": bytes by stage and part, the peak and the capacity.
nlohmann::ordered_json memory_json(const MemoryReport& memory);

struct ResultJsonOptions {
  /// With what concerns this run and not the answer: the program's version and the time it took.
  /// Without it the same scenario gives the same bytes.
  bool about_this_run = true;
  /// With what the scenario was made of, so that the object stands alone.
  bool inputs = true;
};

/// `result` as "orrery.result/1" (docs/reference/json.md lists the keys), units in the keys, always
/// in the same order. Times are whole nanoseconds, bytes whole, other numbers have 9 significant
/// digits. The object under "plan" can be given back as a plan file, and so can the whole, which
/// needs no catalog.
std::string result_json(const Result& result, const ResultJsonOptions& options = {});

}  // namespace orrery
