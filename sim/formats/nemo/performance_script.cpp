#include "sim/formats/nemo/performance_script.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "sim/core/catalog.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/object_reader.hpp"
#include "sim/core/text_file.hpp"
#include "sim/formats/shell/launched_program.hpp"
#include "sim/formats/shell/shell_script.hpp"

namespace orrery {
namespace {

constexpr std::int64_t most_gpus = 1 << 24;

// Narrows `recipes` to those with `word` under `key`. Errors: there is none.
void keep(std::vector<JsonValue>& recipes, const std::string& key, const std::string& word,
          const std::string& what, const Place& place) {
  const auto given = [&](const JsonValue& recipe) {
    const auto value = recipe.find(key);
    return value ? value->text() : std::string{};
  };
  std::vector<std::string> known;
  for (const JsonValue& recipe : recipes)
    if (std::find(known.begin(), known.end(), given(recipe)) == known.end())
      known.push_back(given(recipe));
  if (std::find(known.begin(), known.end(), word) == known.end())
    fail_input(place, what + " '" + shown_text(word) + "', for which no recipe is known",
               "import the configuration that the run prints, or: " + suggestion(word, known));
  std::erase_if(recipes, [&](const JsonValue& recipe) { return given(recipe) != word; });
}

}  // namespace

PerformanceRecipe performance_recipe(const PerformanceQuestion& question, const Place& place) {
  const JsonValue table =
      JsonValue::read_file(find_in_catalog("workloads/recipes", "megatron-bridge", place));
  require_schema(table, "orrery.recipes/1");
  std::vector<JsonValue> recipes = table.at("recipes").elements();
  keep(recipes, "recipe", question.recipe, "starts the recipe", place);
  keep(recipes, "gpu", question.gpu, "starts it on the GPU", place);
  keep(recipes, "dtype", question.dtype, "starts it in", place);
  keep(recipes, "variant", question.variant, "starts its variant", place);
  const auto gpus_of = [](const JsonValue& recipe) {
    return recipe.at("gpus").integer(1, most_gpus);
  };
  const auto closer = [&](const JsonValue& a, const JsonValue& b) {
    const bool is_a = gpus_of(a) == question.gpus, is_b = gpus_of(b) == question.gpus;
    return is_a != is_b ? is_b : gpus_of(a) < gpus_of(b);
  };
  const JsonValue& chosen = *std::max_element(recipes.begin(), recipes.end(), closer);
  return {table.at("models").at(question.recipe).text(), gpus_of(chosen), chosen.at("settings"),
          table.at("layouts").find(question.recipe)};
}

namespace {

constexpr std::string_view recipe_programs[] = {"setup_experiment.py", "run_script.py"};

// scripts/performance/argument_parser.py of NVIDIA-NeMo/Megatron-Bridge. `path`: the setting that
// utils/overrides.py gives the flag's word; "": the flag means something of its own.
struct ScriptFlag {
  std::string_view name, letters, path;
};
constexpr ScriptFlag flags[] = {
    {"model_recipe_name", "mr", ""},
    {"num_gpus", "ng", ""},
    {"gpu", "g", ""},
    {"compute_dtype", "c", ""},
    {"config_variant", "cv", ""},
    {"task", "", ""},
    {"use_recipes", "", ""},
    {"custom_env_vars", "ce", ""},
    {"optimizer_type", "", ""},
    {"global_batch_size", "gb", "train.global_batch_size"},
    {"micro_batch_size", "mb", "train.micro_batch_size"},
    {"seq_length", "sl", "model.seq_length"},
    {"tensor_model_parallel_size", "tp", "model.tensor_model_parallel_size"},
    {"pipeline_model_parallel_size", "pp", "model.pipeline_model_parallel_size"},
    {"context_parallel_size", "cp", "model.context_parallel_size"},
    {"virtual_pipeline_model_parallel_size", "vp", "model.virtual_pipeline_model_parallel_size"},
    {"expert_model_parallel_size", "ep", "model.expert_model_parallel_size"},
    {"expert_tensor_parallel_size", "et", "model.expert_tensor_parallel_size"},
    {"pipeline_model_parallel_layout", "", "model.pipeline_model_parallel_layout"},
    {"use_megatron_fsdp", "", "ddp.use_megatron_fsdp"},
    {"cuda_graph_impl", "", "model.cuda_graph_impl"},
    {"cuda_graph_scope", "", "model.cuda_graph_scope"},
    {"moe_a2a_overlap", "", "model.overlap_moe_expert_parallel_comm"},
    {"recompute_num_layers", "rl", "model.recompute_num_layers"},
    {"recompute_modules", "", "model.recompute_modules"},
    {"activation_offload_layers", "ol", "model.cpu_offloading"},
    {"moe_flex_dispatcher_backend", "", "model.moe_flex_dispatcher_backend"},
};

// They change the model, which is then none of the catalog.
constexpr std::array<std::string_view, 4> of_the_model = {
    "hidden_size", "num_layers", "first_k_dense_replace", "num_moe_experts"};

// Other settings of the script that change time.
constexpr PricedOtherwise script_differences[] = {
    {"use_tokendrop", "drops tokens that overfill an expert; assumed: all of them"},
    {"deterministic", "takes deterministic kernels; assumed: the usual ones"},
    {"lock_gpu_freq", "fixes the GPU's clock; assumed: the usual one"},
};

SettingsTree scalar(const std::string& text, std::size_t line = 0) {
  SettingsTree tree;
  tree.text = text;
  tree.line = line;
  return tree;
}

std::string word_of(const JsonValue& value) {
  if (value.is_boolean()) return value.boolean() ? "true" : "false";
  return value.is_number() ? std::to_string(value.integer(0, 1 << 30)) : value.text();
}

// The map that a path of settings leads to.
void put(SettingsTree& tree, const std::string& path, SettingsTree value) {
  tree.kind = SettingsTree::Kind::map;
  const std::size_t dot = path.find('.');
  const std::string key = path.substr(0, dot);
  auto entry = std::find_if(tree.entries.begin(), tree.entries.end(),
                            [&](const SettingsTree::Entry& one) { return one.key == key; });
  if (entry == tree.entries.end()) entry = tree.entries.insert(entry, {key, {}});
  if (dot == path.npos)
    entry->value = std::move(value);
  else
    put(entry->value, path.substr(dot + 1), std::move(value));
}

SettingsTree tree_of(const JsonValue& settings) {
  SettingsTree tree;
  tree.kind = SettingsTree::Kind::map;
  for (const std::string& path : settings.keys()) {
    const JsonValue value = settings.at(path);
    SettingsTree leaf;
    if (value.is_array()) {
      leaf.kind = SettingsTree::Kind::list;
      for (const JsonValue& item : value.elements()) leaf.items.push_back(scalar(word_of(item)));
    } else {
      leaf = scalar(word_of(value));
    }
    put(tree, path, std::move(leaf));
  }
  return tree;
}

// "--flag=word", "--flag word", "-gb 64"; and overrides of settings, "model.seq_length=4096".
class CommandReader {
 public:
  CommandReader(const std::vector<ShellWord>& words, const std::vector<std::string>& files) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string& text = words[i].text;
      line_ = words[i].line;
      place_ = line_place(files[words[i].file], line_);
      const std::size_t equals = text.find('=');
      if (!text.starts_with('-')) {
        if (is_override(text)) override(text, equals);
        continue;
      }
      std::string word = equals == text.npos ? "" : text.substr(equals + 1);
      const bool has_word =
          equals != text.npos || (i + 1 < words.size() && !words[i + 1].text.starts_with('-') &&
                                  !is_override(words[i + 1].text));
      if (has_word && equals == text.npos) word = words[++i].text;
      add(text.substr(0, equals), has_word ? word : "true");
    }
  }

  struct GivenFlag {
    std::string flag, word;
    Place place;
    std::size_t line = 0;
  };
  /// Finds a flag by its long name, without dashes; null: it is not given.
  const GivenFlag* find(const std::string& name) const {
    const auto found = given_.find(name);
    return found == given_.end() ? nullptr : &found->second;
  }
  std::string word(const std::string& name, const std::string& absent) const {
    const GivenFlag* given = find(name);
    return given ? given->word : absent;
  }
  const std::vector<std::pair<std::string, SettingsTree>>& overrides() const { return overrides_; }

 private:
  void add(const std::string& flag, const std::string& word) {
    const bool is_long = flag.starts_with("--");
    std::string name = flag.substr(is_long ? 2 : 1);
    std::replace(name.begin(), name.end(), '-', '_');
    if (!is_long)
      for (const ScriptFlag& known : flags)
        if (known.letters == name) name = known.name;
    given_.insert_or_assign(name, GivenFlag{flag, word, place_, line_});
  }
  // A path before the '=', not a word of a list ("NCCL_ALGO=Ring").
  static bool is_override(const std::string& text) {
    return text.find('=') != text.npos && text.find('.') < text.find('=');
  }
  void override(const std::string& text, std::size_t equals) {
    const std::size_t begin = text.find_first_not_of('+');
    overrides_.emplace_back(text.substr(begin, equals - begin),
                            scalar(text.substr(equals + 1), line_));
  }

  std::map<std::string, GivenFlag> given_;
  std::vector<std::pair<std::string, SettingsTree>> overrides_;
  Place place_;
  std::size_t line_ = 0;
};

class RunOfCommand {
 public:
  RunOfCommand(const CommandReader& given, const Place& place) : given_{given}, place_{place} {}

  PerformanceRun read(const std::string& file, bool names_model) {
    if (given_.find("use_recipes"))
      fail_input(place_of("use_recipes"), "takes a library recipe, whose settings are not known",
                 "import the configuration that the run prints");
    const std::string task = given_.word("task", "pretrain");
    if (task != "pretrain")
      fail_input(place_of("task"), "is " + shown_text(task) + ", whose recipes are not known",
                 "import the configuration that the run prints");
    for (const std::string_view name : of_the_model)
      if (given_.find(std::string{name}) && !names_model)
        fail_input(place_of(std::string{name}), "changes the model of the recipe",
                   "give the model: --model NAME or a config.json");
    const PerformanceQuestion question{required("model_recipe_name"), required("gpu"),
                                       given_.word("compute_dtype", "bf16"),
                                       given_.word("config_variant", ""), gpus()};
    const PerformanceRecipe recipe = performance_recipe(question, place_);
    SettingsTree tree = tree_of(recipe.settings);
    change(tree);
    lay_out(recipe, tree, file);
    for (const auto& [path, value] : given_.overrides()) put(tree, path, value);
    PerformanceRun run{Settings{std::move(tree), file}, recipe.model, question.gpus, {}, {}};
    if (recipe.gpus != question.gpus) other_size(recipe, run);
    tell(question, run.notes);
    return run;
  }

 private:
  Place place_of(const std::string& name) const {
    const auto* given = given_.find(name);
    return given ? Place{given->place.file + ": " + given->flag, ""} : place_;
  }
  std::string required(const std::string& name) const {
    const auto* given = given_.find(name);
    if (!given) fail_input(place_, "does not say --" + name, "add it to the command");
    return given->word;
  }
  std::int64_t gpus() const {
    const auto count = plain_integer(required("num_gpus"), 1 << 24);
    if (!count || *count == 0)
      fail_input(place_of("num_gpus"), "is not a number of GPUs", "write a whole number");
    return *count;
  }

  void other_size(const PerformanceRecipe& recipe, PerformanceRun& run) const {
    run.notes.push_back("the recipe is for " + grouped(recipe.gpus) + " GPUs");
    if (!given_.find("global_batch_size"))
      fail_input(place_,
                 "starts " + grouped(run.gpus) + " GPUs, for which the recipe has no global batch",
                 "add --global_batch_size, or give --set train.global_batch_size=N");
  }

  static bool is_true(const std::string& word) {
    return word == "true" || word == "True" || word == "1" || word == "yes";
  }

  // Like utils/overrides.py: a flag of one setting may bring others along.
  void change(SettingsTree& tree) const {
    for (const ScriptFlag& flag : flags) {
      const auto* given = given_.find(std::string{flag.name});
      if (!given || flag.path.empty()) continue;
      const bool is_none = given->word == "None" || given->word == "none";
      put(tree, std::string{flag.path}, scalar(is_none ? "null" : given->word, given->line));
    }
    const auto also = [&](const CommandReader::GivenFlag& given, const char* path,
                          const char* word) { put(tree, path, scalar(word, given.line)); };
    if (const auto* tp = given_.find("tensor_model_parallel_size"))
      also(*tp, "model.sequence_parallel", tp->word == "1" ? "false" : "true");
    if (const auto* layers = given_.find("recompute_num_layers")) {
      also(*layers, "model.recompute_granularity", "full");
      also(*layers, "model.recompute_method", "block");
    }
    if (const auto* modules = given_.find("recompute_modules"))
      also(*modules, "model.recompute_granularity", "selective");
    if (const auto* fsdp = given_.find("use_megatron_fsdp"); fsdp && is_true(fsdp->word))
      also(*fsdp, "ddp.data_parallel_sharding_strategy", "optim_grads_params");
    if (const auto* overlap = given_.find("moe_a2a_overlap"); overlap && is_true(overlap->word)) {
      also(*overlap, "model.delay_wgrad_compute", "true");
      also(*overlap, "model.moe_shared_expert_overlap", "false");
    }
    if (const auto* backend = given_.find("moe_flex_dispatcher_backend"))
      also(*backend, "model.moe_token_dispatcher_type",
           backend->word == "None" ? "alltoall" : "flex");
  }

  // Models with a table of layouts have the one for their stages; others keep the recipe's.
  void lay_out(const PerformanceRecipe& recipe, SettingsTree& tree, const std::string& file) const {
    const bool is_same = !given_.find("pipeline_model_parallel_size") &&
                         !given_.find("virtual_pipeline_model_parallel_size");
    if (is_same || !recipe.layouts || given_.find("pipeline_model_parallel_layout")) return;
    const Settings settings{tree, file};
    const std::string stages =
        std::to_string(settings.number("model.pipeline_model_parallel_size", 1)) + "x" +
        std::to_string(settings.number("model.virtual_pipeline_model_parallel_size", 1));
    const auto layout = recipe.layouts->find(stages);
    put(tree, "model.pipeline_model_parallel_layout", scalar(layout ? layout->text() : "null"));
  }

  void tell(const PerformanceQuestion& question, std::vector<std::string>& notes) const {
    notes.push_back(
        "what the script leaves open is as in Megatron-Bridge's performance recipe of August 2026");
    if (question.recipe == "kimi_k2" && given_.word("optimizer_type", "muon") == "muon")
      notes.push_back("the recipe's optimizer is Muon; assumed: Adam");
    for (const auto& [name, sentence] : script_differences)
      if (const std::string word = given_.word(name, "false"); word != "false" && word != "False")
        notes.push_back("--" + std::string{name} + " " + sentence);
  }

  const CommandReader& given_;
  Place place_;
};

bool is_performance(const LaunchCommand& launch) {
  return std::find(std::begin(recipe_programs), std::end(recipe_programs), launch.program) !=
             std::end(recipe_programs) &&
         has_flag(launch.arguments, {"-mr", "--model_recipe_name"});
}

}  // namespace

std::optional<PerformanceRun> read_performance_run(const std::string& text, const std::string& file,
                                                   const RecipeAnswers& answers) {
  if (std::none_of(std::begin(recipe_programs), std::end(recipe_programs),
                   [&](std::string_view name) { return text.find(name) != text.npos; }))
    return std::nullopt;
  const ShellScript script = read_shell_script(text, file, answers.set, answers.other_file);
  std::optional<LaunchCommand> chosen;
  for (const auto& command : script.commands)
    if (LaunchCommand launch = launch_of(command); is_performance(launch))
      chosen = std::move(launch);
  if (!chosen) return std::nullopt;
  const CommandReader given{chosen->arguments, script.files};
  PerformanceRun run = RunOfCommand{given, {file, ""}}.read(file, answers.model.has_value());
  for (const auto& [name, words] : script.variables)
    if (name.starts_with("NCCL_") && !words.empty()) run.nccl[name] = words[0].text;
  if (const auto* more = given.find("custom_env_vars"))
    for (const std::string& one : items_of(more->word))
      if (const std::size_t equals = one.find('='); one.starts_with("NCCL_") && equals != one.npos)
        run.nccl[one.substr(0, equals)] = one.substr(equals + 1);
  run.notes.insert(run.notes.begin(), script.notes.begin(), script.notes.end());
  return run;
}

}  // namespace orrery
