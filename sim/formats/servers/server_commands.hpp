#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/enum_words.hpp"
#include "sim/formats/recipe/recipe.hpp"

namespace orrery {

/// Engine of a server that a command starts.
enum class ServerKind { vllm, sglang, trtllm };
/// Also the schedulers of the engines that they are.
template <>
inline const std::vector<std::string> enum_words<ServerKind>{"vllm", "sglang", "trtllm"};

/// A command that starts a server of some engine, or one of its worker processes.
struct ServerCommand {
  ServerKind kind = ServerKind::vllm;
  std::string program;  ///< "vllm serve", "dynamo.sglang".
  Settings words;       ///< Flags of the command, '-' written as '_'; the model as "model".
  Settings file;        ///< Contents of its file of settings; empty: it names none.
};

/// The servers that a script starts.
struct StartedServers {
  std::vector<ServerCommand> servers;
  std::string router;  ///< A policy of docs/guides/serve.md; "": not given.
  /// Major and minor number of vLLM, of the image or package that the script names.
  std::optional<std::pair<int, int>> vllm_release = {};
  std::vector<std::string> notes;
};

/// `files`: a script with the commands, and files of settings that it names; or one such file
/// alone. Errors (bad_input): no command starts a server, a file that it names is not there.
StartedServers find_servers(const std::vector<RecipeFile>& files, const RecipeAnswers& answers);

}  // namespace orrery
