#include <optional>

#include "sim/formats/automodel/automodel_run.hpp"
#include "sim/formats/benchmarks/benchmark_result.hpp"
#include "sim/formats/deepspeed/deepspeed_run.hpp"
#include "sim/formats/megatron/megatron_run.hpp"
#include "sim/formats/nanotron/nanotron_run.hpp"
#include "sim/formats/nemo/nemo_run.hpp"
#include "sim/formats/posttraining/rl_recipe.hpp"
#include "sim/formats/servers/server_reader.hpp"
#include "sim/formats/settings/settings_files.hpp"
#include "sim/formats/torchtitan/torchtitan_run.hpp"
#include "sim/model/model.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/posttraining/rl_job.hpp"
#include "sim/serving/deployment.hpp"
#include "tests/fuzz/entry_groups.hpp"
#include "tests/fuzz/fuzz_checks.hpp"

namespace orrery {
namespace {

// Every value stands on a line of the text.
void check_lines(const SettingsTree& tree, std::size_t lines) {
  if (tree.line > lines) __builtin_trap();
  for (const SettingsTree& item : tree.items) check_lines(item, lines);
  for (const auto& [key, value] : tree.entries) check_lines(value, lines);
}
bool fuzz_yaml(const std::string& text) {
  return is_accepted([&] { check_lines(read_yaml(text, "fuzz.yaml"), text.size()); });
}

bool fuzz_toml(const std::string& text) {
  return is_accepted([&] { check_lines(read_toml(text, "fuzz.toml"), text.size()); });
}

// What is written is read again: a plan, and a model that may yet be refused.
void check_run(const ImportedRun& run) {
  const JsonValue plan = parsed(run.json);
  PlanRequest request;
  for (const std::string& key : plan.keys())
    if (find_plan_key(key)) set_plan_key(request, key, plan.at(key));
  parse_model(plan.at("model"));
}
bool fuzz_megatron(const std::string& text) {
  return is_accepted([&] {
    check_run(import_megatron_run(MegatronArguments::read(text, "fuzz.sh", {{"TP", "2"}}), "fuzz"));
  });
}

// As it is, and with a model and a number of GPUs, so that what follows is read too.
template <class Import>
bool either_way(Import import) {
  bool any = false;
  for (const RecipeAnswers& answers : {RecipeAnswers{"fuzz", std::nullopt, std::nullopt, {}, {}},
                                       RecipeAnswers{"fuzz", "llama3-8b", 64, {}, {}}})
    any |= is_accepted([&] { check_run(import(answers)); });
  return any;
}

bool fuzz_torchtitan(const std::string& text) {
  return either_way([&](const RecipeAnswers& answers) {
    return import_torchtitan_run(text, "fuzz.toml", answers);
  });
}

bool fuzz_nanotron(const std::string& text) {
  return either_way([&](const RecipeAnswers& answers) {
    return import_nanotron_run(text, "fuzz.yaml", answers);
  });
}

bool fuzz_automodel(const std::string& text) {
  return either_way([&](const RecipeAnswers& answers) {
    return import_automodel_run(text, "fuzz.yaml", answers);
  });
}

bool fuzz_nemo(const std::string& text) {
  return either_way(
      [&](const RecipeAnswers& answers) { return import_nemo_run(text, "fuzz.yaml", answers); });
}

// A script, arguments and a configuration of DeepSpeed, of which each is the text.
bool fuzz_deepspeed(const std::string& text) {
  const RecipeFile arguments{"bf16: true\nmodel_name_or_path: gpt2\nmax_len: 64\n", "args.yaml"};
  bool any = false;
  for (const std::vector<RecipeFile>& files : {std::vector<RecipeFile>{{text, "fuzz.sh"}},
                                               {{text, "fuzz.json"}},
                                               {arguments, {text, "fuzz.yaml"}}})
    any |= either_way([&](RecipeAnswers answers) {
      answers.other_file = [&](const std::string&) { return std::optional{text}; };
      return import_deepspeed_run(files, answers);
    });
  return any;
}

// A script, and a file of settings that one names, of which each is the text.
bool fuzz_servers(const std::string& text) {
  const RecipeFile script{"trtllm-serve Qwen/Qwen3-8B --extra_llm_api_options x.yaml\n", "fuzz.sh"};
  bool any = false;
  for (const std::vector<RecipeFile>& files : {std::vector<RecipeFile>{{text, "fuzz.sh"}},
                                               {{text, "fuzz.yaml"}},
                                               {script, {text, "x.yaml"}}})
    for (const std::optional<std::string>& model : {std::optional<std::string>{}, {"llama3.1-8b"}})
      any |= is_accepted([&] {
        const RecipeAnswers answers{"fuzz", model, std::nullopt, {{"accepted", "0.5"}}, {}};
        deployment_options_of(parsed(import_servers(files, answers).json));
      });
  return any;
}

// An imported job can be read again, and a configuration that includes itself is refused.
void check_rl_job(const ImportedRun& run) {
  const JsonValue job = parsed(run.json);
  RlRequest request;
  read_rl_request(request, job, {"model", "gpus", "framework"});
  parse_model(job.at("model"));
}
template <ImportedRun (*import)(const RecipeFile&, const RecipeAnswers&)>
bool loop_of(const std::string& text, const std::string& file) {
  bool any = false;
  for (const std::optional<std::string>& model : {std::optional<std::string>{}, {"llama3.1-8b"}})
    any |= is_accepted([&] {
      RecipeAnswers answers{"fuzz", model, std::nullopt, {}, {}};
      answers.other_file = [&](const std::string&) { return std::optional{text}; };
      check_rl_job(import({text, file}, answers));
    });
  return any;
}
bool fuzz_nemo_rl(const std::string& text) {
  return loop_of<import_nemo_rl_run>(text, "fuzz.yaml");
}
bool fuzz_verl(const std::string& text) {
  return loop_of<import_verl_run>(text, "fuzz.sh") | loop_of<import_verl_run>(text, "fuzz.yaml");
}

bool fuzz_openrlhf(const std::string& text) {
  return loop_of<import_openrlhf_run>(text, "fuzz.sh");
}

bool fuzz_benchmarks(const std::string& text) {
  return is_accepted([&] {
    const std::vector<BenchmarkResult> results = read_benchmark_results(text, "fuzz.json");
    const JsonValue plan = parsed(
        R"({"schema": "orrery.deployment/1", "model": "qwen3-8b", "engine": "vllm", "gpus": 1})");
    parsed("[" + benchmark_cases(results, "fuzz.json", plan, "dgx-h100") + "]");
  });
}

}  // namespace

std::vector<EntryPoint> recipe_entries() {
  using enum Shape;
  return {{"yaml", fuzz_yaml, bytes},           {"toml", fuzz_toml, bytes},
          {"megatron", fuzz_megatron, bytes},   {"torchtitan", fuzz_torchtitan, bytes},
          {"nanotron", fuzz_nanotron, bytes},   {"automodel", fuzz_automodel, bytes},
          {"deepspeed", fuzz_deepspeed, bytes}, {"nemo", fuzz_nemo, bytes},
          {"servers", fuzz_servers, bytes},     {"benchmarks", fuzz_benchmarks, bytes},
          {"nemo_rl", fuzz_nemo_rl, bytes},     {"verl", fuzz_verl, bytes},
          {"openrlhf", fuzz_openrlhf, bytes}};
}

}  // namespace orrery
