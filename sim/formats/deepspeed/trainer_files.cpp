#include "sim/formats/deepspeed/trainer_files.hpp"

#include <algorithm>
#include <cctype>

#include "sim/core/json_value.hpp"
#include "sim/core/text_file.hpp"
#include "sim/formats/recipe/other_launchers.hpp"
#include "sim/formats/settings/settings_files.hpp"
#include "sim/formats/shell/launched_program.hpp"
#include "sim/formats/shell/shell_script.hpp"

namespace orrery {
namespace {

enum class FileKind { trainer, engine, accelerate, adapter };

// Keys by which a configuration is known.
constexpr const char* engine_keys[] = {"zero_optimization",
                                       "train_micro_batch_size_per_gpu",
                                       "train_batch_size",
                                       "gradient_clipping",
                                       "fp16",
                                       "bf16",
                                       "steps_per_print"};
constexpr const char* accelerate_keys[] = {"distributed_type", "compute_environment",
                                           "deepspeed_config", "fsdp_config", "num_processes"};

FileKind kind_of(const SettingsTree& tree) {
  const auto has = [&](const char* key) { return tree.find(key) != nullptr; };
  if (has("peft_type")) return FileKind::adapter;
  for (const char* key : {"per_device_train_batch_size", "model_name_or_path", "base_model"})
    if (has(key)) return FileKind::trainer;
  if (std::any_of(std::begin(accelerate_keys), std::end(accelerate_keys), has))
    return FileKind::accelerate;
  if (std::any_of(std::begin(engine_keys), std::end(engine_keys), has)) return FileKind::engine;
  return FileKind::trainer;
}

bool is_settings_file(const std::string& path) {
  return path.ends_with(".json") || path.ends_with(".yaml") || path.ends_with(".yml");
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Some are the trainer's, too.
bool may_be_of_engine(const std::string& name) {
  const std::string first = name.substr(0, name.find('.'));
  return std::find(std::begin(engine_keys), std::end(engine_keys), first) != std::end(engine_keys);
}

bool is_training(const LaunchCommand& launch) {
  return !launch.program.empty() &&
         has_flag(launch.arguments,
                  {"--per_device_train_batch_size", "--per-device-train-batch-size", "--deepspeed",
                   "--deepspeed_config", "--model_name_or_path", "--gradient_accumulation_steps",
                   "--config"});
}

constexpr const char* trl_sft = "trl sft";

class FilesReader {
 public:
  FilesReader(const std::vector<RecipeFile>& files, const RecipeAnswers& answers)
      : files_{files}, answers_{answers} {}

  TrainerFiles read() {
    const RecipeFile* script = nullptr;
    for (const RecipeFile& file : files_) {
      require_text(file.text, file.path, "a launch script or a file of settings");
      if (is_settings_file(file.path)) {
        add(file);
      } else if (script) {
        fail_input({file.path, ""}, "is a second script, after " + script->path,
                   "name one launch script");
      } else {
        script = &file;
      }
    }
    if (script) read_script(*script);
    for (const auto& [name, value] : answers_.set)
      if (is_setting(name) && !may_be_of_engine(name)) all_.trainer.set(name, value);
    return std::move(all_);
  }

 private:
  void add(const RecipeFile& file) {
    refuse_other_file(file.text, file.path, "deepspeed");
    SettingsTree tree = read_yaml(file.text, file.path);
    if (tree.kind != SettingsTree::Kind::map)
      fail_input({file.path, ""}, "has no settings", "name a file of settings");
    const FileKind kind = kind_of(tree);
    Settings& settings = kind == FileKind::trainer   ? all_.trainer
                         : kind == FileKind::engine  ? all_.engine
                         : kind == FileKind::adapter ? all_.adapter
                                                     : all_.accelerate;
    if (!settings.file().empty())
      fail_input({file.path, ""}, "says what " + settings.file() + " says too", "name one of them");
    settings = Settings{std::move(tree), file.path};
  }

  void read_script(const RecipeFile& file) {
    const ShellScript script =
        read_shell_script(file.text, file.path, answers_.set, answers_.other_file);
    all_.notes = script.notes;
    LaunchCommand chosen;
    SlurmOptions slurm;
    int trainings = 0;
    for (const auto& command : script.commands) {
      if (is_slurm_command(command[0].text)) slurm.read(command);
      LaunchCommand launch = launch_of(command);
      if (command.size() > 2 && base_name(command[0].text) == "trl" && command[1].text == "sft") {
        launch.program = trl_sft;
        launch.launcher.clear();
        launch.arguments = argument_words({command.begin() + 2, command.end()});
      }
      if (!is_training(launch)) continue;
      ++trainings;
      launch.gpus = launched_gpus(launch.launcher, slurm);
      chosen = std::move(launch);
    }
    if (trainings == 0) {
      refuse_other_file(file.text, file.path, "deepspeed");
      refuse_other_launcher(script);
    }
    if (trainings == 0)
      fail_input({file.path, ""},
                 "starts no training with --per_device_train_batch_size or "
                 "--deepspeed",
                 "give the script that launches it, or its settings in JSON or YAML");
    if (trainings > 1)
      all_.notes.push_back("the script starts " + std::to_string(trainings) +
                           " trainings; the last one counts");
    all_.program = chosen.program;
    for (const auto& [name, words] : script.variables)
      if (name.starts_with("NCCL_") && !words.empty()) all_.nccl[name] = words[0].text;
    if (chosen.gpus) all_.gpus = *chosen.gpus;
    all_.accelerate_file = value_of(chosen.launcher, "--config_file");
    take_arguments(chosen.arguments, script, file.path);
  }

  static std::string value_of(const std::vector<ShellWord>& words, const std::string& flag) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i].text == flag && i + 1 < words.size()) return words[i + 1].text;
      if (words[i].text.starts_with(flag + "=")) return words[i].text.substr(flag.size() + 1);
    }
    return "";
  }

  // Flags as argparse reads them: one without a word is true, one with several is a list. They win
  // over the file that --config names.
  void take_arguments(const std::vector<ShellWord>& words, const ShellScript& script,
                      const std::string& path) {
    SettingsTree tree;
    tree.kind = SettingsTree::Kind::map;
    SettingsTree* last = nullptr;
    std::string file = path;
    for (const ShellWord& word : words) {
      SettingsTree value;
      value.line = word.line;
      value.text = word.text;
      if (word.text.size() < 3 || !word.text.starts_with("--")) {
        if (last && (is_bare_ || !is_unset_variable(word.text))) append(*last, std::move(value));
        continue;
      }
      file = script.files[word.file];
      const std::size_t equals = word.text.find('=');
      std::string name = word.text.substr(2, equals == word.text.npos ? equals : equals - 2);
      std::replace(name.begin(), name.end(), '-', '_');
      value.text = equals == word.text.npos ? "true" : word.text.substr(equals + 1);
      tree.entries.push_back({name, std::move(value)});
      last = equals == word.text.npos ? &tree.entries.back().value : nullptr;
      is_bare_ = true;
    }
    all_.trainer = Settings{std::move(tree), file};
  }

  void append(SettingsTree& value, SettingsTree word) {
    if (is_bare_) {
      value.text = word.text;
    } else if (value.kind == SettingsTree::Kind::scalar) {
      SettingsTree first = value;
      value.kind = SettingsTree::Kind::list;
      value.items = {std::move(first), std::move(word)};
    } else {
      value.items.push_back(std::move(word));
    }
    is_bare_ = false;
  }

  const std::vector<RecipeFile>& files_;
  const RecipeAnswers& answers_;
  TrainerFiles all_{{{}, ""}, {{}, ""}, {{}, ""}, {{}, ""}, "", "", std::nullopt, {}, {}};
  bool is_bare_ = false;  ///< The flag that was read last has no word yet.
};

void read_named(const std::string& named, Settings& settings, const std::string& key,
                const std::string& by, const RecipeAnswers& answers) {
  if (named.empty() || !settings.file().empty()) return;
  const auto found = named_file(named, by, answers);
  if (!found)
    fail_input({by, ""}, key + " names " + shown_text(named) + ", which is not there",
               "name it too: orrery import deepspeed " + shown_text(by) + " " +
                   shown_text(base_name(named)));
  settings = Settings{read_yaml(found->text, found->path), found->path};
}

}  // namespace

TrainerFiles read_trainer_files(const std::vector<RecipeFile>& files,
                                const RecipeAnswers& answers) {
  return FilesReader{files, answers}.read();
}

void read_named_files(TrainerFiles& all, const std::string& by, const RecipeAnswers& answers) {
  read_named(all.accelerate_file, all.accelerate, "--config_file", by, answers);
  for (const char* key : {"deepspeed", "deepspeed_config"}) {
    const SettingsTree* value = all.trainer.find(key);
    if (!value || value->kind != SettingsTree::Kind::scalar) continue;
    const bool is_switch = value->text == "true" || value->text == "True";
    if (!is_switch) read_named(value->text, all.engine, key, by, answers);
  }
  read_named(all.accelerate.word("deepspeed_config.deepspeed_config_file", ""), all.engine,
             "deepspeed_config_file", by, answers);
  for (const auto& [name, value] : answers.set) {
    if (!is_setting(name) || !may_be_of_engine(name)) continue;
    const bool is_nested = name.find('.') != name.npos;
    const bool of_engine = !all.engine.file().empty() && (is_nested || !all.trainer.has(name));
    (of_engine ? all.engine : all.trainer).set(name, value);
  }
}

}  // namespace orrery
