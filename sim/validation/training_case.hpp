#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/plan/scenario.hpp"

namespace orrery {

/// A published training run.
struct TrainingCase {
  std::string id;
  std::string title;    ///< Title of the source.
  std::string locator;  ///< Page or table of the figures.
  std::string system;
  int gpus = 0;
  JsonValue model;
  JsonValue plan;
  std::optional<Seconds> step_time;
  std::optional<double> tokens_rate;  ///< Tokens a second and GPU, read without a step time.
  std::optional<Bytes> peak_memory;
  std::optional<int> peak_memory_stage;  ///< Stage of the reporting GPU; else the fullest.
  std::map<std::string, Seconds> peers;  ///< Predictions of other simulators.

  /// The measured step: its time, or what the measured tokens a second and GPU make of the same
  /// tokens. One of the two is required.
  Seconds measured_step(Seconds predicted, double predicted_rate) const {
    return step_time ? *step_time : predicted_rate / *tokens_rate * predicted;
  }
};

/// Reads a file of training cases: a list of objects as docs/notes/validation.md describes them.
std::vector<TrainingCase> read_training_cases(const JsonValue& json);

/// The scenario of a case: its plan, on top of what its authors published of such runs elsewhere
/// (published_plan.hpp). Keys that describe the setup of a run but not its behaviour are left out;
/// all others must be known. Errors: as make_scenario.
Scenario scenario_of(const TrainingCase& as_written);

/// The authors' description of a run in other publications.
struct PublishedPlan {
  std::string software;          ///< Empty: unknown.
  std::vector<JsonValue> plans;  ///< Plan keys; later ones override earlier ones.
};

/// The case completed by the first matching rule of workloads/publications/software.json: keys of
/// the model that it lacks ("model"), keys of the plan that override it ("corrected"), and the
/// stage whose memory it reports ("peak_memory_stage"). Words become numbers: chunks ("max (each
/// layer a chunk)", "least") and stages of chosen lengths ("more in the first stages", "as nanotron
/// cuts them").
TrainingCase as_published(TrainingCase training_case);

/// The plan by the same rule, and by the recipe that the rule's file of recipes has for the run.
///
/// Recipes are the presets of a release. Among those for the case's model, system and format, the
/// one with the printed layout is used, from the case's own release or else the next: figures of a
/// release are made with the later presets. If there is none, the one of its own release with the
/// most of the layout is used. A release that the file does not know is its last. `training_case`:
/// as_published().
PublishedPlan published_plan(const TrainingCase& training_case);

}  // namespace orrery
