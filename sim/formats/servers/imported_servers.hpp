#pragma once

#include "sim/formats/recipe/recipe.hpp"

namespace orrery {

/// The deployment that commands of vLLM, SGLang, TensorRT-LLM or Dynamo start, as a file of
/// orrery.deployment/1 (sim/serving/deployment_file.hpp). Equal servers are replicas;
/// servers that compute prompts and servers that go on with them are pools. `answers.set` has
/// settings and shell variables, and "accepted" (of drafted tokens), "engine", "system".
/// Errors (bad_input): no server, servers that differ, settings without a price.
ImportedRun import_servers(const std::vector<RecipeFile>& files, const RecipeAnswers& answers);

}  // namespace orrery
