#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/plan/scenario.hpp"

namespace orrery {

/// A training run that somebody measured and published.
struct TrainingCase {
  std::string id;
  std::string title;    ///< Of the source.
  std::string locator;  ///< Where in it the figures are printed.
  std::string system;
  int gpus = 0;
  JsonValue model;
  JsonValue plan;
  std::optional<Seconds> step_time;
  std::optional<Bytes> peak_memory;
  std::optional<int> peak_memory_stage;  ///< Whose GPU reported it; else the fullest one's.
  std::map<std::string, Seconds> peers;  ///< What other simulators predicted for it.
};

/// Reads a file of training cases: a list of objects as docs/VALIDATION.md describes them.
std::vector<TrainingCase> read_training_cases(const JsonValue& json);

/// The scenario of a case: what its plan says, on top of what its authors published of such runs
/// elsewhere (published_plan.hpp). Keys that say how the run was made but not how it behaves are
/// left out; everything else must be understood. Errors: as make_scenario.
Scenario scenario_of(const TrainingCase& as_written);

}  // namespace orrery
