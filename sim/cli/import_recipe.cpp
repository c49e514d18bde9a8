#include "sim/cli/import_recipe.hpp"

#include <filesystem>
#include <iostream>

#include "sim/cli/import_output.hpp"
#include "sim/cli/launch_script.hpp"
#include "sim/core/text_file.hpp"
#include "sim/formats/deepspeed/deepspeed_run.hpp"
#include "sim/formats/nanotron/nanotron_run.hpp"
#include "sim/formats/nemo/nemo_run.hpp"
#include "sim/formats/torchtitan/torchtitan_run.hpp"

namespace po = boost::program_options;

namespace orrery {
namespace {

struct Format {
  std::string name;
  const char* what;  ///< That it reads.
  ImportedRun (*read)(const std::vector<RecipeFile>& files, const RecipeAnswers& answers);
  bool is_one_file = true;
};

template <ImportedRun (*read)(const std::string& text, const std::string& file,
                              const RecipeAnswers& answers)>
ImportedRun of_one_file(const std::vector<RecipeFile>& files, const RecipeAnswers& answers) {
  return read(files.front().text, files.front().path, answers);
}

const std::vector<Format>& formats() {
  static const std::vector<Format> all{
      {"torchtitan", "a job file of torchtitan (TOML)", of_one_file<import_torchtitan_run>},
      {"nanotron", "a configuration of nanotron (YAML)", of_one_file<import_nanotron_run>},
      {"deepspeed",
       "what starts a run of DeepSpeed or of Hugging Face's Trainer: a launch script,\n"
       "its arguments (JSON, YAML), the configurations of DeepSpeed and accelerate",
       import_deepspeed_run, false},
      {"nemo",
       "a recipe of NeMo or Megatron-Bridge (YAML), a log of Megatron-Bridge, or a script that\n"
       "starts one of its performance recipes",
       of_one_file<import_nemo_run>}};
  return all;
}

std::int64_t gpus_of(const ParsedOptions& parsed) {
  constexpr int most = 1 << 24;
  const auto count = plain_integer(parsed.text("gpus"), most);
  if (!count || *count == 0)
    fail_input({"", "--gpus"}, "is not a count from 1 to 16,777,216", "write a whole number");
  return *count;
}

}  // namespace

const std::vector<std::string>& recipe_formats() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Format& format : formats()) all.push_back(format.name);
    return all;
  }();
  return names;
}

int import_recipe(const std::string& name, const Arguments& arguments) {
  const Format* format = nullptr;
  for (const Format& one : formats())
    if (one.name == name) format = &one;
  po::options_description options{"Options", 100};
  const auto text = [](const char* value) { return po::value<std::string>()->value_name(value); };
  options.add_options()("model", text("NAME|FILE"), "in place of the model that the file names")(
      "gpus", text("N"), "GPUs of the run, where the file does not say it")(
      "name", text("NAME"), "what to call a model that has no name (default: the file's)");
  add_setting_options(options);
  add_output_options(options);
  const ParsedOptions parsed = parse_options(options, arguments, {});
  if (parsed.has("help")) {
    std::cout << "usage: orrery import " << name << (format->is_one_file ? " FILE" : " FILE...")
              << " [options]\n\nReads " << format->what
              << "; writes a plan with its model, for --plan\nand --model.\n\n"
              << options;
    return exit_ok;
  }
  if (parsed.words.empty()) fail_input({}, "nothing to import", "name a file");
  if (format->is_one_file && parsed.words.size() != 1)
    fail_input({}, "one run is one file", "name one file");
  std::vector<RecipeFile> files;
  for (const std::string& path : parsed.words) files.push_back({read_text_file(path), path});
  RecipeAnswers answers;
  answers.name = parsed.has("name") ? parsed.text("name")
                                    : std::filesystem::path{files.front().path}.stem().string();
  if (parsed.has("model")) answers.model = parsed.text("model");
  if (parsed.has("gpus")) answers.gpus = gpus_of(parsed);
  answers.set = given_values(parsed);
  answers.other_file = text_if_there;
  const ImportedRun run = format->read(files, answers);
  write_result(parsed, run.json, run.notes);
  return exit_ok;
}

}  // namespace orrery
