#pragma once

#include <string>
#include <vector>

#include "sim/formats/servers/server_reader.hpp"
#include "sim/serving/pools.hpp"

namespace orrery {

/// A pool of equal replicas, and the first GPU of each.
struct ScriptedPool {
  ServerRole role = ServerRole::all;
  Deployment plan;
  std::vector<int> first_gpus;
};

/// Commands of the engine that start a deployment, for Bash; and a sentence for all that no
/// flag says.
struct ServerScript {
  std::string text;
  std::vector<std::string> left_out;
};

/// One pool, or those for prompts and answers. `orrery import server` reads the same deployment
/// from the text. Errors (bad_input): the engine is none of vLLM, SGLang and TensorRT-LLM.
ServerScript server_script(const Model& model, const System& system, const ServingEngine& engine,
                           const std::vector<ScriptedPool>& pools, bool prefix_cache,
                           const Place& at);

}  // namespace orrery
