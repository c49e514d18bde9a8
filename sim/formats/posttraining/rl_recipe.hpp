#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/formats/recipe/recipe.hpp"
#include "sim/formats/shell/shell_script.hpp"

namespace orrery {

/// A loop of reinforcement learning of any framework, in the keys of orrery.post/1.
struct RlRecipe {
  std::string framework;
  Recipe training;  ///< Its gpus are those that train; batch and sequences follow from samples.
  std::int64_t rollout_gpus = 0;  ///< GPUs that generate alone; 0: all do both.
  nlohmann::ordered_json loop = nlohmann::ordered_json::object();     ///< Keys of rl_keys().
  nlohmann::ordered_json rollout = nlohmann::ordered_json::object();  ///< Keys of a deployment.
};

/// Layers of the first and the last stage of a pipeline, chosen by Megatron's
/// num_layers_in_first_pipeline_stage and num_layers_in_last_pipeline_stage in `section`; others
/// have equal ones. Errors (bad_input): they cannot.
void read_outer_stages(const Settings& settings, const std::string& section, Recipe& recipe);

/// A share of a GPU's memory: above 0 and at most 1. Errors (bad_input): another value.
double memory_share(const Settings& settings, const std::string& path, const std::string& absent);

/// Errors (bad_input): one of `paths` is there and is no map of settings, which would hide all that
/// the section decides.
void need_sections(const Settings& settings, const std::vector<std::string>& paths);

/// A script that starts a loop, with those of `answers.set` that are variables: they have no dot.
ShellScript read_loop_script(const RecipeFile& file, const RecipeAnswers& answers);

/// A map of settings without any.
SettingsTree empty_section();
/// Puts a word where a path ("a.b.c") says it into a tree, in place of what is there.
void put_setting(SettingsTree& tree, const std::string& path, const std::string& text,
                 std::size_t line, const std::string& file);

/// The job file: what it does not say are lengths of prompts and answers and the system, which a
/// note names. Errors (bad_input): see written_plan().
ImportedRun written_rl_job(const RlRecipe& recipe, const Place& place);

/// A YAML configuration with those that it names under `defaults`, from whose folder their paths
/// count: maps are merged, its own values win, and `_override_: true` replaces a map as a whole.
/// The user's answers win over all; references are resolved (references.hpp).
/// Errors (bad_input): no YAML; a file that is not there; files that name each other.
Settings read_layered_settings(const RecipeFile& file, const RecipeAnswers& answers);

/// The loop (GRPO, DAPO, PPO) of a configuration of NeMo-RL and of those that it goes on from, with
/// the defaults of release 0.6 for absent settings. `answers.set` are settings by their paths:
/// "grpo.num_prompts_per_step". Errors (bad_input): no YAML; recipes of fine-tuning, preferences or
/// distillation; a setting that nothing prices, by its line.
ImportedRun import_nemo_rl_run(const RecipeFile& file, const RecipeAnswers& answers);

/// The loop that a script starts by verl (verl.trainer.main_ppo, recipe.dapo.main_dapo and the
/// one-step-off-policy trainer) with its settings on the command line, or that a configuration of
/// verl (YAML) describes, with the defaults of trainer/config of January 2026 for absent settings.
/// `answers.set`: settings by their paths, and variables of the script, which have no dot. Errors
/// (bad_input): no such command; a setting that nothing prices, by its line.
ImportedRun import_verl_run(const RecipeFile& file, const RecipeAnswers& answers);

/// The loop that a script starts by OpenRLHF (openrlhf.cli.train_ppo_ray), with options as releases
/// from 0.10.2 on write them or as those before did, and the defaults of August 2026 (0.11) for
/// absent ones. `answers.set`: options without their dashes, and variables of the script. Errors
/// (bad_input): no such command; an option that nothing prices, by its line.
ImportedRun import_openrlhf_run(const RecipeFile& file, const RecipeAnswers& answers);

}  // namespace orrery
