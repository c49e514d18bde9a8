#include "sim/formats/posttraining/rl_recipe.hpp"

#include <algorithm>

#include "sim/core/number_text.hpp"
#include "sim/core/text_file.hpp"
#include "sim/core/value_list.hpp"

namespace orrery {

void read_outer_stages(const Settings& settings, const std::string& section, Recipe& recipe) {
  const std::string first_key = section + "num_layers_in_first_pipeline_stage";
  const std::string last_key = section + "num_layers_in_last_pipeline_stage";
  const std::int64_t first = std::max<std::int64_t>(0, settings.number(first_key, 0));
  const std::int64_t last = std::max<std::int64_t>(0, settings.number(last_key, 0));
  if (recipe.pp <= 1 || (first == 0 && last == 0)) return;
  const std::int64_t others = recipe.pp - (first > 0) - (last > 0);
  const std::int64_t rest = recipe.model->layers - first - last;
  const bool divides = others > 0 ? rest >= others && rest % others == 0 : rest == 0;
  if (recipe.vpp > 1 || !divides)
    settings.fail(first > 0 ? first_key : last_key,
                  "leaves " + grouped(rest) + " layers to " + plural(others, "stage"),
                  "choose numbers that leave a multiple");
  if (first > 0) recipe.layers.of.push_back(static_cast<int>(first));
  for (std::int64_t stage = 0; stage < others; ++stage)
    recipe.layers.of.push_back(static_cast<int>(rest / others));
  if (last > 0) recipe.layers.of.push_back(static_cast<int>(last));
}

double memory_share(const Settings& settings, const std::string& path, const std::string& absent) {
  const std::string text = settings.word(path, absent);
  const auto share = plain_number(text);
  if (!share || *share <= 0.0 || *share > 1.0)
    settings.fail(path, "is '" + shown_text(text) + "'", "write a share above 0, at most 1");
  return *share;
}

void need_sections(const Settings& settings, const std::vector<std::string>& paths) {
  for (const std::string& path : paths)
    if (const SettingsTree* found = settings.look(path);
        found && found->kind != SettingsTree::Kind::map && !found->is_null())
      settings.fail(path, "is no section of settings", "write its settings below it");
}

ShellScript read_loop_script(const RecipeFile& file, const RecipeAnswers& answers) {
  std::map<std::string, std::string> variables;
  for (const auto& [name, value] : answers.set)
    if (name.find('.') == name.npos) variables[name] = value;
  return read_shell_script(file.text, file.path, variables, answers.other_file);
}

SettingsTree empty_section() {
  SettingsTree map;
  map.kind = SettingsTree::Kind::map;
  return map;
}

void put_setting(SettingsTree& tree, const std::string& path, const std::string& text,
                 std::size_t line, const std::string& file) {
  SettingsTree* at = &tree;
  for (const std::string& key : split(path, ".")) {
    if (at->kind != SettingsTree::Kind::map) *at = empty_section();
    auto entry = std::find_if(at->entries.begin(), at->entries.end(),
                              [&](const auto& other) { return other.key == key; });
    if (entry == at->entries.end()) entry = at->entries.insert(entry, {key, {}});
    at = &entry->value;
  }
  *at = {};
  at->text = text;
  at->line = line;
  at->file = file;
}

ImportedRun written_rl_job(const RlRecipe& recipe, const Place& place) {
  using Json = nlohmann::ordered_json;
  // A plan's batch, which the samples of a step replace.
  Recipe trainer = recipe.training;
  trainer.mbs = trainer.seq = 1;
  trainer.gbs = 1;
  ImportedRun run = written_plan(trainer, place);
  Json training = Json::parse(run.json);
  Json job = Json::object();
  job["schema"] = "orrery.post/1";
  job["framework"] = recipe.framework;
  job["model"] = training["model"];
  if (training.contains("gpus"))
    job["gpus"] = training["gpus"].get<std::int64_t>() + recipe.rollout_gpus;
  if (recipe.rollout_gpus > 0) job["rollout_gpus"] = recipe.rollout_gpus;
  for (const auto& [key, value] : recipe.loop.items()) job[key] = value;
  for (const char* key : {"model", "gpus", "gbs", "mbs", "seq"}) training.erase(key);
  job["training"] = training;
  job["rollout"] = recipe.rollout;
  run.json = job.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  run.notes.push_back(
      "lengths are not in the file: give --prompt_length and --mean_response, or --sample_lengths, "
      "and --system to orrery post --job");
  return run;
}

}  // namespace orrery
