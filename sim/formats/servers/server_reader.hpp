#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/dtype.hpp"
#include "sim/formats/recipe/recipe.hpp"
#include "sim/formats/servers/server_commands.hpp"

namespace orrery {

/// Number formats that the name of a published checkpoint states.
struct CheckpointName {
  std::string model;  ///< Without the words for formats: "Qwen/Qwen3-32B" of "Qwen/Qwen3-32B-FP8".
  std::optional<Dtype> weights;  ///< Format of all linear layers.
};
CheckpointName read_checkpoint_name(const std::string& name);

/// The formats in which a model of the catalog is published where its name says none, as
/// DeepSeek-V3 in fp8_block.
struct PublishedFormats {
  Dtype weights = Dtype::bf16;
  Dtype experts = Dtype::bf16;
};
PublishedFormats published_formats(const std::string& catalog_name);

/// The words of vLLM and SGLang, and of publishers of checkpoints, for a format of all weights
/// (vllm/model_executor/layers/quantization, sglang/srt/layers/quantization).
struct ServedFormat {
  Dtype format;
  std::string suffix;  ///< The end of a checkpoint's name, as read_checkpoint_name() reads it.
  std::vector<std::string> quantizations = {};  ///< Values of --quantization that mean it.
  bool when_loaded = false;  ///< The first of these makes it of 16 bits as they are loaded.
  Dtype finer = format;      ///< A checkpoint in this format is meant by the same values.
};
const std::vector<ServedFormat>& served_formats();

/// The requests that a server answers, or the part of them.
enum class ServerRole { all, prefill, decode };

/// One server, in a deployment's terms.
struct ServedPart {
  Model model;
  std::string catalog_name;     ///< Name of the model; "": it is of a file.
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
  ServerReader(const ServerCommand& command, const RecipeAnswers& answers);

  /// Errors (bad_input): refused settings, by their place, with a remedy.
  ServedPart read();

 private:
  const Settings& having(const std::string& paths) const {
    return preferred_.has(paths) ? preferred_ : other_;
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
  /// Host memory of one GPU: the value at `paths`, in units of `unit` bytes, over `ranks`.
  void take_host_memory(const std::string& paths, double unit, std::int64_t ranks);
  void note(const std::string& paths, const std::string& sentence);
  [[noreturn]] void refuse(const std::string& paths, const std::string& sentence,
                           const std::string& remedy) const;
  /// Refuses an unsupported setting: a path that is there and on, or a count above 1.
  void refuse_on(const std::string& paths, const std::string& sentence) const;

  void read_model();
  void read_formats(const std::string& quantization, const std::string& dtype,
                    const std::string& cache);
  void read_draft(const std::string& method, const std::string& model, std::int64_t tokens,
                  const std::string& paths);
  void read_vllm();
  void read_vllm_draft();
  void read_vllm_role();
  void read_sglang();
  void read_sglang_draft();
  void read_trtllm();
  void read_trtllm_draft();
  void note_rest();

  const ServerCommand& command_;
  const RecipeAnswers& answers_;
  const Settings& preferred_;
  const Settings& other_;
  CheckpointName checkpoint_;
  ServedPart part_;
};

/// The deployment that commands of vLLM, SGLang, TensorRT-LLM or Dynamo start, as a file of
/// orrery.deployment/1 (sim/serving/deployment.hpp). Equal servers are replicas;
/// servers that compute prompts and servers that go on with them are pools. `answers.set` has
/// settings and shell variables, and "accepted" (of drafted tokens), "engine", "system".
/// Errors (bad_input): no server, servers that differ, settings without a price.
ImportedRun import_servers(const std::vector<RecipeFile>& files, const RecipeAnswers& answers);

}  // namespace orrery
