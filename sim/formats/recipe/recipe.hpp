#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/core/error.hpp"
#include "sim/formats/settings/settings.hpp"
#include "sim/model/model.hpp"
#include "sim/plan/plan.hpp"

namespace orrery {

/// Keys of a model (orrery.model/1) from a recipe.
class ModelSizes {
 public:
  void number(const std::string& key, std::int64_t value) { add(key, std::to_string(value)); }
  void flag(const std::string& key, bool value) { add(key, value ? "true" : "false"); }
  void word(const std::string& key, const std::string& value) { add(key, json_quoted(value)); }

  /// Errors (bad_input): sizes that no model has, as of `file`.
  Model model(const std::string& name, const std::string& source, const std::string& file) const;

 private:
  void add(const std::string& key, const std::string& json) {
    entries_ += ", " + json_quoted(key) + ": " + json;
  }
  std::string entries_;
};

/// `tokens` padded to a multiple of `multiple`, which counts as 1 where it is less. Both as a user
/// wrote them: at most 2^30.
std::int64_t padded_rows(std::int64_t tokens, std::int64_t multiple);

/// A plan file with the model inside, for people, with conclusions and omissions.
struct ImportedRun {
  std::string json;  ///< Keys of a plan, "model" and, if known, "gpus".
  std::vector<std::string> notes;
};

/// A file of a run, as the user named it.
struct RecipeFile {
  std::string text, path;
};

/// The user's additions to a run's files.
struct RecipeAnswers {
  std::string name;                  ///< Name of a model that has no name of its own.
  std::optional<std::string> model;  ///< Replaces the file's: a catalog name, or a file.
  std::optional<std::int64_t> gpus;
  std::map<std::string, std::string> set;  ///< Settings by their paths, or a script's variables.
  /// The text of another file that one of them names; nothing: it is not there.
  std::function<std::optional<std::string>(const std::string& path)> other_file = {};
};

/// A file that a script or a configuration names.
struct NamedFile {
  std::string text, path;
};
/// `named` where a program finds it that runs in the user's folder, in that of `by` or in one above
/// it as far as the path of `by` spells them: scripts are started in a repository's top folder.
std::optional<NamedFile> named_file(const std::string& named, const std::string& by,
                                    const RecipeAnswers& answers);

/// A run of any training program in a plan's words (sim/plan/plan_keys.cpp).
struct Recipe {
  std::optional<Model> model;  ///< Always there when it is written.
  std::int64_t tp = 1, pp = 1, vpp = 1, cp = 1, ep = 1, etp = 1;
  std::optional<std::int64_t> gpus;
  std::int64_t mbs = 1, seq = 0;
  std::optional<std::int64_t> gbs;
  std::int64_t local_batch = 0;  ///< Of a replica, behind which the pipeline drains; 0: not said.
  std::int64_t per_replica = 0;  ///< Sequences of a replica in a step, where there is no gbs.
  std::string schedule = "1f1b";
  StageLayers layers;  ///< Chosen where the program does not divide them evenly.
  std::string recompute = "none";
  std::int64_t zero = 0;
  std::int64_t dp_replicate = 1;
  std::int64_t offload_optimizer = 0;  ///< Percent.
  bool offload_weights = false;
  bool chunked_loss = false;
  bool reshard = true;  ///< Applies to zero 3.
  /// What is trained; the others apply to adapters.
  std::string finetune = "full", lora_targets = "all-linear", base_format = "";
  std::int64_t lora_rank = 16;
  bool lora_dropout = false, train_tables = false;
  bool sp = false;
  std::string dtype = "bf16", attention = "flash", cp_comm = "p2p";
  std::string moe_dispatcher = "alltoall", routing = "uniform";
  std::string main_params = "fp32", exp_avg = "fp32", exp_avg_sq = "fp32";
  bool tp_overlap = false, dp_overlap = true;
  std::string nccl_algo = "any", nccl_proto = "any";
  std::string software;
  std::vector<std::string> notes;
};

/// The plan that states all of it, so that no default of ours fills anything in. Where `gbs` is
/// absent it is that of all replicas. `place`: of the run. Errors (bad_input): neither the global
/// batch nor the number of GPUs is known; a degree or a size below 1.
ImportedRun written_plan(const Recipe& recipe, const Place& place);

/// The product of counts that a user wrote. One that no plan can have, 2^40 and more, is 2^40; a
/// count below 1 makes it 0.
std::int64_t product_of(std::initializer_list<std::int64_t> counts);

/// Ranks of one replica, or of several where experts of `ep` x `etp` ranks share theirs; `ep` and
/// `etp` are 1 and `tp` where there are none. More than any plan has are 2^40.
std::int64_t ranks_needed(std::int64_t tp, std::int64_t pp, std::int64_t cp, std::int64_t ep,
                          std::int64_t etp);

/// The model that the user names in place of the file's; nothing: none.
std::optional<Model> model_of_answer(const RecipeAnswers& answers);

/// A model of sizes as JSON text: orrery.model/1 without name and source, or a Hugging Face config,
/// which has no source.
Model model_of_sizes(const std::string& json, const std::string& name, const std::string& source);

/// The catalog's model that a name of the hub means, or that of an existing folder with a
/// config.json. Nothing: neither.
std::optional<Model> model_by_name(const std::string& name, const RecipeAnswers& answers);

/// The model that the user names, else that of the name at `paths`. Errors (bad_input): no model is
/// named, or an unknown one.
Model named_model(const Settings& settings, const std::string& paths, const RecipeAnswers& answers);

/// Errors (bad_input): a setting below `section` changes the model's shape. Others say how it is
/// loaded, or, below `section`.rope_scaling of a `config.json`, how positions are scaled.
void refuse_model_sizes(const Settings& settings, const std::string& section,
                        bool has_config = false);

/// A name in `answers.set` is that of a setting. Variables of scripts have capitals or are numbers:
/// "GPUS", "1".
bool is_setting(const std::string& name);

/// Replaces settings by the user's answers, which win.
void take_answers(Settings& settings, const RecipeAnswers& answers);

/// Notes "not read: a b", with the paths that no code has read and that `harmless` does not cover,
/// if there are any. Errors: see refuse(); some of them are on and decisive (decisive_keys.hpp).
void note_unread(const Settings& settings, const std::vector<std::string>& harmless,
                 std::vector<std::string>& notes);

/// A setting is there and neither false, 0, "none" nor empty.
bool is_on(const Settings& settings, const std::string& paths);

/// A setting whose effect, if it is on, the estimate does not model.
struct PricedOtherwise {
  const char* paths;  ///< Paths in the notation of Settings.
  const char* sentence;
};

/// "path sentence" for each of them that is on. Errors: one of them is decisive.
void note_otherwise(const Settings& settings, std::span<const PricedOtherwise> all,
                    std::vector<std::string>& notes);

/// The meaning of NCCL's variables in a run's environment.
struct NcclSettings {
  /// As a plan has them: of NCCL_ALGO, NCCL_PROTO and NCCL_NVLS_ENABLE=0.
  std::string nccl_algo = "any", nccl_proto = "any";
  /// A sentence for each other that may change a run's time: that nothing in the model depends on
  /// it, or what says the same. Those of logs, timeouts and interfaces are passed over.
  std::vector<std::string> notes;
};

/// `environment`: values by name, as `place` sets them. Errors (bad_input): an algorithm or a
/// protocol that is none of NCCL's.
NcclSettings nccl_settings(const std::map<std::string, std::string>& environment,
                           const Place& place);

}  // namespace orrery
