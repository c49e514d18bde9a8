#pragma once

#include <string>
#include <vector>

#include "sim/formats/servers/server_reader.hpp"
#include "sim/serving/deployment.hpp"
#include "sim/serving/pools.hpp"

namespace orrery {

/// The server that flags are written for.
struct ServerSpec {
  const Model& model;
  const System& system;
  const ServingEngine& engine;
  const Deployment& plan;  ///< A plan of one replica; their number does not matter.
  ServerRole role = ServerRole::all;
  bool prefix_cache = true;
  std::string settings_file;    ///< Name of a settings file, if the engine reads one.
  std::string checkpoint = {};  ///< The one to serve; "": the model's, in the plan's formats.
};

/// The command, and what its file of settings holds.
struct ServerFlags {
  std::vector<std::string> command;
  std::string settings;
  std::vector<std::string> left_out;  ///< Settings that neither can express, a sentence each.
};

/// Writes what differs from the engine's defaults. Errors (bad_input): the engine has no server.
ServerFlags server_flags(const ServerSpec& spec, const Place& at);

/// A pool of equal replicas, and the first GPU of each.
struct ScriptedPool {
  ServerRole role = ServerRole::all;
  Deployment plan;
  std::vector<int> first_gpus;
};

/// Commands of the engine that start a deployment, for Bash; and a sentence for each setting that
/// no flag can express.
struct ServerScript {
  std::string text;
  std::vector<std::string> left_out;
};

/// One pool, or those for prompts and answers. `orrery import server` reads the same deployment
/// from the text. `checkpoint`: of ServerSpec. Errors (bad_input): the engine is none of vLLM,
/// SGLang and TensorRT-LLM.
ServerScript server_script(const Model& model, const System& system, const ServingEngine& engine,
                           const std::vector<ScriptedPool>& pools, bool prefix_cache,
                           const Place& at, const std::string& checkpoint = "");

}  // namespace orrery
