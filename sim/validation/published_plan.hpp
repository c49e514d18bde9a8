#pragma once

#include <string>
#include <vector>

#include "sim/validation/training_case.hpp"

namespace orrery {

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
