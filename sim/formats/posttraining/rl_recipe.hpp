#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/formats/recipe/recipe.hpp"

namespace orrery {

/// A loop of reinforcement learning of any framework, in the keys of orrery.post/1.
struct RlRecipe {
  std::string framework;
  Recipe training;  ///< Its gpus are those that train; batch and sequences follow from samples.
  std::int64_t rollout_gpus = 0;  ///< GPUs that generate alone; 0: all do both.
  nlohmann::ordered_json loop = nlohmann::ordered_json::object();     ///< Keys of rl_keys().
  nlohmann::ordered_json rollout = nlohmann::ordered_json::object();  ///< Keys of a deployment.
};

/// Layers of the first and the last stage of a pipeline, which Megatron's
/// num_layers_in_first_pipeline_stage and num_layers_in_last_pipeline_stage in `section` choose; the
/// others have equal ones. Errors (bad_input): they cannot.
void read_outer_stages(const Settings& settings, const std::string& section, Recipe& recipe);

/// The job file: what it does not say are lengths of prompts and answers and the system, which a
/// note names. Errors (bad_input): see written_plan().
ImportedRun written_rl_job(const RlRecipe& recipe, const Place& place);

}  // namespace orrery
