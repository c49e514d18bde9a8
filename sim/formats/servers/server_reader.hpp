#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/dtype.hpp"
#include "sim/formats/recipe/recipe.hpp"
#include "sim/formats/servers/checkpoint.hpp"
#include "sim/formats/servers/server_commands.hpp"
#include "sim/serving/serving_engine.hpp"

namespace orrery {

/// The requests that a server answers, or the part of them.
enum class ServerRole { all, prefill, decode };

/// One server, in a deployment's terms.
struct ServedPart {
  Model model;
  std::string catalog_name;     ///< Name of the model; "": it is of a file.
  std::string checkpoint;       ///< As the command names it.
  nlohmann::ordered_json keys;  ///< A deployment's keys; replicas are those within the server.
  bool prefix_cache = true;
  ServerRole role = ServerRole::all;
  bool is_further_node = false;  ///< Another command starts its server.
  std::vector<std::string> notes;
};

/// Settings that all engines have in common. Words of the command and of a file are looked up as
/// one, in the order in which the engine prefers them.
class ServerReader {
 public:
  /// `engine`: that the server is priced by.
  ServerReader(const ServerCommand& command, const RecipeAnswers& answers,
               const ServingEngine& engine);

  /// Errors (bad_input): refused settings, by their place, with a remedy.
  ServedPart read();

 private:
  const Settings& having(const std::string& paths) const {
    if (!preferred_.has(paths)) return other_;
    other_.word(paths, "");  // What it says too counts as read.
    return preferred_;
  }
  bool has(const std::string& paths) const { return having(paths).has(paths); }
  bool flag(const std::string& paths, bool absent) const {
    return having(paths).flag(paths, absent);
  }
  std::string word(const std::string& paths, const std::string& absent) const {
    return having(paths).word(paths, absent);
  }
  std::int64_t count(const std::string& paths, std::int64_t absent) const;
  void take_count(const char* key, const std::string& paths);
  void take_share(const std::string& paths);
  /// A number of tokens as vLLM reads it: 32768, 32k, 32K.
  std::int64_t tokens_of(const std::string& paths) const;
  /// The longest request: what `paths` say, or the checkpoint's own length.
  void take_length(const std::string& paths);
  /// Host memory of one GPU: the value at `paths`, in units of `unit` bytes, over `ranks`.
  void take_host_memory(const std::string& paths, double unit, std::int64_t ranks);
  void note(const std::string& paths, const std::string& sentence);
  [[noreturn]] void refuse(const std::string& paths, const std::string& sentence,
                           const std::string& remedy) const;
  /// Refuses an unsupported setting: a path that is there and on, or a count above 1.
  void refuse_on(const std::string& paths, const std::string& sentence) const;

  void read_model();
  CheckpointFormats read_checkpoint(const std::string& name) const;
  void read_formats(const std::string& quantization, const std::string& dtype,
                    const std::string& cache);
  /// States of linear attention and state spaces: their format, and their share of the memory.
  void read_states(const std::string& format, const std::string& ratio);
  /// Takes a number from 0.001 to `most`, if there is one, as a key of the deployment.
  void take_ratio(const char* key, const std::string& path, double most);
  void read_draft(const std::string& method, const std::string& model, std::int64_t tokens,
                  const std::string& paths);
  void read_dispatch(const std::string& overlap, const std::string& redundant);
  void read_vllm();
  void read_vllm_draft();
  void read_vllm_role();
  void read_sglang();
  void read_windows();
  void read_prefill_delay(bool shares_experts);
  void read_receive_interval(bool copies_attention);
  void read_graph_sizes();
  void read_sglang_draft();
  void read_trtllm();
  void read_trtllm_draft();
  void note_rest();

  const ServerCommand& command_;
  const RecipeAnswers& answers_;
  const ServingEngine& engine_;
  const Settings& preferred_;
  const Settings& other_;
  CheckpointFormats checkpoint_;
  ServedPart part_;
};

/// The deployment that commands of vLLM, SGLang, TensorRT-LLM or Dynamo start, as a file of
/// orrery.deployment/1 (sim/serving/deployment.hpp). Equal servers are replicas;
/// servers that compute prompts and servers that go on with them are pools. `answers.set` has
/// settings and shell variables, and "accepted" (of drafted tokens), "engine", "system".
/// Errors (bad_input): no server, servers that differ, settings without a price.
ImportedRun import_servers(const std::vector<RecipeFile>& files, const RecipeAnswers& answers);

}  // namespace orrery
