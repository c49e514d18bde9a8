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

/// Reads a file of training cases: a list of objects as docs/notes/validation.md describes them.
std::vector<TrainingCase> read_training_cases(const JsonValue& json);

/// The scenario of a case: what its plan says, on top of what its authors published of such runs
/// elsewhere (published_plan.hpp). Keys that say how the run was made but not how it behaves are
/// left out; everything else must be understood. Errors: as make_scenario.
Scenario scenario_of(const TrainingCase& as_written);

/// What the authors of a published run say elsewhere of how they made it.
struct PublishedPlan {
  std::string software;          ///< Empty: nobody says.
  std::vector<JsonValue> plans;  ///< Plan keys; a later one counts more than those before it.
};

/// The case as its publication has it: with what the first rule of workloads/publications/
/// software.json that holds of it says of the model where the case says nothing ("model"), and of
/// the plan whatever the case says ("corrected"), and whose memory it tells
/// ("peak_memory_stage"). Words become numbers: chunks ("max (each layer a chunk)", "least") and
/// stages of chosen lengths ("more in the first stages", "as nanotron cuts them").
TrainingCase as_published(TrainingCase training_case);

/// By the same rule, and by the recipe that the rule's file of recipes has for the run.
///
/// Recipes are the presets of a release. Of those for the case's model, system and format, the one
/// counts that has the printed layout, of the case's own release or else of the next: figures of a
/// release are made with what becomes the next one's. Where none has it, one of its own release
/// counts, the one that has most of the layout. A release that the file does not know is its last.
/// `training_case`: as_published().
PublishedPlan published_plan(const TrainingCase& training_case);

}  // namespace orrery
