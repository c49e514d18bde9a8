#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "sim/calibration/curve.hpp"
#include "sim/calibration/nccl_tests.hpp"
#include "sim/cli/import_output.hpp"
#include "sim/cli/options.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/text_file.hpp"
#include "sim/core/write_file.hpp"
#include "sim/formats/automodel/automodel_run.hpp"
#include "sim/formats/benchmarks/benchmark_result.hpp"
#include "sim/formats/deepspeed/deepspeed_run.hpp"
#include "sim/formats/inventory/cluster_words.hpp"
#include "sim/formats/inventory/nccl_topology.hpp"
#include "sim/formats/inventory/smi_topology.hpp"
#include "sim/formats/megatron/megatron_run.hpp"
#include "sim/formats/nanotron/nanotron_run.hpp"
#include "sim/formats/nemo/nemo_run.hpp"
#include "sim/formats/posttraining/rl_recipe.hpp"
#include "sim/formats/servers/server_reader.hpp"
#include "sim/formats/torchtitan/torchtitan_run.hpp"
#include "sim/profile/kernel_record.hpp"
#include "sim/reliability/fault_trace.hpp"
#include "sim/reliability/reliability_text.hpp"

namespace orrery {
namespace {

const std::vector<std::string>& some_words(const Options& options, const std::string& remedy) {
  if (options.words().empty()) fail_input({}, "nothing to import", remedy);
  return options.words();
}

std::vector<RecipeFile> read_files(const std::vector<std::string>& paths) {
  std::vector<RecipeFile> files;
  for (const std::string& path : paths) files.push_back({read_text_file(path), path});
  return files;
}

// A whole number from 1 to `most`.
auto count_to(int most) {
  return [most](const std::string& text, const Place& at) {
    const auto count = plain_integer(text, most);
    if (!count || *count == 0)
      fail_input(at, "is not a count from 1 to " + grouped(most), "write a whole number");
    return *count;
  };
}

}  // namespace

int import_bench(const Arguments& arguments) {
  std::optional<std::string> plan;
  std::string system;
  ImportOutput output;
  Options options;
  options.add("plan", "FILE", "the deployment that was measured, as orrery import server writes it",
              plan);
  options.add("system", "NAME|FILE", "the cluster on which it ran", system);
  add_output(options, output);
  if (!options.read(
          arguments,
          "usage: orrery import bench FILE... --plan DEPLOYMENT --system NAME [options]\n\n"
          "Reads results of vLLM's and SGLang's benchmarks, AIPerf, GenAI-Perf, genai-bench, "
          "trtllm-bench,\ninference-perf and InferenceX, and the blocks that the first two and "
          "trtllm-bench print; writes\ncases for orrery validate and orrery serve --runs."))
    return exit_ok;
  const std::vector<std::string>& files = some_words(options, "name a result");
  std::optional<JsonValue> deployment;
  if (plan) deployment = JsonValue::read_file(*plan);
  std::string cases;
  std::vector<std::string> notes;
  for (const std::string& file : files) {
    const std::vector<BenchmarkResult> results = read_benchmark_results(read_text_file(file), file);
    for (const BenchmarkResult& result : results)
      for (const std::string& note : result.notes) notes.push_back(file + ": " + note);
    cases += (cases.empty() ? "" : ",\n") + benchmark_cases(results, file, deployment, system);
  }
  write_result(options, output, "[\n" + cases + "\n]\n", notes);
  return exit_ok;
}

int import_cluster(const Arguments& arguments) {
  SystemAnswers words;
  ImportOutput output;
  Options options;
  for (const ClusterOption& option : cluster_options())
    options.add(option.name, option.value, option.help, words);
  add_output(options, output);
  options.basic({"gpu", "gpus-per-node", "nics", "fabric", "oversubscription", "network",
                 "switch-ports", "nodes-per-leaf", "wiring", "nvlink-domain", "scale-up-bandwidth",
                 "network-latency", "network-efficiency", "name", "output", "force", "help"});
  if (!options.read(arguments,
                    "usage: orrery import cluster --gpu NAME --gpus-per-node N --nics NxRATE "
                    "[options]\n\n"
                    "Writes a system from a few words. What you leave open is assumed, and said."))
    return exit_ok;
  options.refuse_words("write --gpu NAME --gpus-per-node N --nics NxRATE");
  if (!words.contains("name") && output.file)
    words["name"] = std::filesystem::path{*output.file}.stem().string();
  const ImportedSystem imported = cluster_json(words);
  write_result(options, output, imported.json, imported.notes);
  return exit_ok;
}

int import_kineto(const Arguments& arguments) {
  std::string output, names_file;
  bool force = false;
  Options options;
  options.add("output", "FILE",
              "write the record there instead of to stdout (also -o FILE), and say what is in it",
              output);
  options.add("names", "FILE", "what your kernels do, before workloads/kernel_names.json",
              names_file);
  options.add("force", "replace files that Orrery did not write", force);
  options.help();
  if (!options.read(
          arguments,
          "usage: orrery import kineto FILE... [-o RECORD] [options]\n\n"
          "Reads traces of PyTorch's profiler, written with record_shapes=True; writes how long "
          "each\nshape of product and attention took, for orrery calibrate fit."))
    return exit_ok;
  const std::vector<std::string>& files = some_words(options, "name one or more traces");
  if (std::find(files.begin(), files.end(), output) != files.end())
    fail_input(command_line / "output", "'" + output + "' is also what is read",
               "name another file");
  const KernelNames names{names_file};
  std::vector<KinetoTrace> traces;
  for (const std::string& file : files) traces.push_back(read_kineto(file));
  const TracedKernels traced = kernels_of_traces(traces, names);
  const std::string text = calibration::record_json(traced.record);
  if (output.empty()) {
    std::cout << text;
  } else {
    write_output(output, text, force);
    std::int64_t runs = 0;
    for (const calibration::Measurement& one : traced.record.measurements)
      runs += one.warm->samples;
    std::cout << output << ": " << grouped(std::ssize(traced.record.measurements)) << " shapes, "
              << grouped(runs) << " runs, on " << traced.record.machine.gpu << "\n";
  }
  for (const std::string& note : traced.notes) print_note(note);
  return exit_ok;
}

namespace {

ImportedRun import_launch_script(const std::string& text, const std::string& file,
                                 const RecipeAnswers& answers) {
  MegatronArguments run = MegatronArguments::read(text, file, answers.set, answers.other_file);
  if (answers.gpus) run.set_gpus(static_cast<int>(*answers.gpus));
  return import_megatron_run(run, answers.name, model_of_answer(answers));
}

struct Format {
  std::string name;
  const char* what;  ///< The source that it reads.
  ImportedRun (*read)(const std::vector<RecipeFile>& files, const RecipeAnswers& answers);
  bool is_one_file = true;
  bool is_script = false;  ///< Variables are set, not settings.
  bool is_loop = false;    ///< Of reinforcement learning.
};

template <ImportedRun (*read)(const std::string& text, const std::string& file,
                              const RecipeAnswers& answers)>
ImportedRun of_one_file(const std::vector<RecipeFile>& files, const RecipeAnswers& answers) {
  return read(files.front().text, files.front().path, answers);
}

template <ImportedRun (*read)(const RecipeFile& file, const RecipeAnswers& answers)>
ImportedRun of_one_recipe(const std::vector<RecipeFile>& files, const RecipeAnswers& answers) {
  return read(files.front(), answers);
}

const std::vector<Format>& formats() {
  static const std::vector<Format> all{
      {"megatron",
       "a launch script of Megatron-LM, Megatron-DeepSpeed or ms-swift, or the list of\n"
       "arguments that Megatron-LM prints",
       of_one_file<import_launch_script>, true, true},
      {"torchtitan", "a job file of torchtitan (TOML)", of_one_file<import_torchtitan_run>},
      {"nanotron", "a configuration of nanotron (YAML)", of_one_file<import_nanotron_run>},
      {"automodel", "a recipe of NeMo AutoModel (YAML)", of_one_file<import_automodel_run>},
      {"deepspeed",
       "what starts a run of DeepSpeed or of Hugging Face's Trainer: a launch script,\n"
       "its arguments (JSON, YAML), the configurations of DeepSpeed and accelerate",
       import_deepspeed_run, false},
      {"nemo",
       "a recipe of NeMo or Megatron-Bridge (YAML), a log of Megatron-Bridge, or a script that\n"
       "starts one of its performance recipes",
       of_one_file<import_nemo_run>},
      {"nemo-rl", "a configuration of NeMo-RL (YAML), with those that it goes on from",
       of_one_recipe<import_nemo_rl_run>, true, false, true},
      {"verl", "a script that starts a loop by verl, or its configuration (YAML)",
       of_one_recipe<import_verl_run>, true, false, true},
      {"openrlhf", "a script that starts a loop by OpenRLHF (train_ppo_ray)",
       of_one_recipe<import_openrlhf_run>, true, false, true}};
  return all;
}

int import_recipe(const Format& format, const Arguments& arguments) {
  RecipeAnswers answers;
  ImportOutput output;
  Options options;
  options.add("model", "NAME|FILE", "in place of the model that the file names", answers.model);
  options.add("gpus", "N", "GPUs of the run, where the file does not say it", answers.gpus,
              count_to(1 << 24));
  options.add("name", "NAME", "what to call a model that has no name (default: the file's)",
              answers.name);
  (format.is_script ? add_variables : add_settings)(options, answers.set);
  add_output(options, output);
  if (!options.read(arguments, "usage: orrery import " + format.name +
                                   (format.is_one_file ? " FILE" : " FILE...") +
                                   " [options]\n\nReads " + format.what +
                                   (format.is_loop ? "; writes a job, for orrery post --job."
                                                   : "; writes a plan with its model, for --plan\n"
                                                     "and --model.")))
    return exit_ok;
  const std::vector<std::string>& paths = some_words(options, "name a file");
  if (format.is_one_file && paths.size() != 1)
    fail_input({}, "one run is one file", "name one file");
  if (!options.has("name")) answers.name = std::filesystem::path{paths.front()}.stem().string();
  answers.other_file = text_if_there;
  const ImportedRun run = format.read(read_files(paths), answers);
  write_result(options, output, run.json, run.notes);
  return exit_ok;
}

}  // namespace

int import_server(const Arguments& arguments) {
  RecipeAnswers answers;
  ImportOutput output;
  Options options;
  options.add("model", "NAME|FILE", "in place of the model that is named", answers.model);
  std::map<std::string, std::string> given;
  options.add("engine", "NAME", "another release of the engine: orrery list engines", given);
  options.add("system", "NAME|FILE", "the cluster on which it runs, written to the file", given);
  options.add("accepted", "RATE",
              "in how many steps drafted tokens are accepted, which no command says "
              "(docs/guides/serve.md)",
              given);
  add_settings(options, answers.set);
  add_output(options, output);
  if (!options.read(
          arguments,
          "usage: orrery import server FILE... [options]\n\n"
          "Reads a script with vllm serve, sglang.launch_server, trtllm-serve or Dynamo's workers, "
          "and the\nfiles of settings that these name; writes a deployment, for orrery serve "
          "--plan."))
    return exit_ok;
  const std::vector<RecipeFile> files = read_files(some_words(options, "name a script"));
  for (const auto& [name, text] : given) answers.set[name] = text;
  answers.other_file = text_if_there;
  const ImportedRun run = import_servers(files, answers);
  write_result(options, output, run.json, run.notes);
  return exit_ok;
}

namespace {

int import_nccl_tests(const Arguments& arguments) {
  constexpr int most = 10'000'000;
  NcclTestsAnswers answers;
  ImportOutput output;
  Options options;
  options.add("collective", "NAME", "what ran, where neither log nor file name says it",
              answers.collective);
  options.add("system", "NAME", "what the machine is called", answers.system);
  options.add("ranks", "N", "where no line names them", answers.ranks, count_to(most));
  options.add("nodes", "N", "where hosts cannot be counted", answers.nodes, count_to(most));
  add_output(options, output);
  if (!options.read(arguments,
                    "usage: orrery import nccl-tests FILE... [options]\n\n"
                    "Reads the text output of nccl-tests or its -J file; writes curves (bytes, "
                    "time)."))
    return exit_ok;
  std::vector<Curve> curves;
  for (const std::string& file : some_words(options, "name one or more files"))
    for (Curve& curve : read_nccl_tests(read_text_file(file), file, answers))
      curves.push_back(std::move(curve));
  write_result(options, output, curves_json(curves), {});
  for (const Curve& curve : curves) {
    std::cerr << curve.file << ": " << curve.collective << ", " << curve.ranks << " ranks on "
              << curve.nodes << (curve.nodes == 1 ? " node, " : " nodes, ") << curve.points.size()
              << " sizes\n";
    for (const std::string& warning : curve.warnings)
      std::cerr << "orrery: warning: " << curve.file << ": " << warning << "\n";
  }
  return exit_ok;
}

using ReadDraft = SystemDraft (*)(const std::string& text, const std::string& file,
                                  const SystemAnswers& answers);

// The kind of value of the option of `import cluster` with the same name.
std::string value_of_answer(const std::string& name) {
  if (name == "nic-bandwidth") return "RATE";
  for (const ClusterOption& option : cluster_options())
    if (option.name == name) return option.value;
  return "VALUE";
}

int import_system(const Arguments& arguments, const std::string& format, const std::string& what,
                  ReadDraft read) {
  SystemAnswers answers;
  ImportOutput output;
  Options options;
  for (const auto& [name, meaning] : system_answer_options())
    options.add(name, value_of_answer(name), meaning, answers);
  add_output(options, output);
  if (!options.read(arguments, "usage: orrery import " + format + " FILE [options]\n\nReads " +
                                   what + "; writes a system."))
    return exit_ok;
  const std::string& file =
      options.only_word("nothing to import", "one system is one file", "name one file");
  answers = with_rate_of_nics(std::move(answers));
  const ImportedSystem imported = system_json(read(read_text_file(file), file, answers), answers);
  write_result(options, output, imported.json, imported.notes);
  return exit_ok;
}

int import_faults(const Arguments& arguments) {
  std::optional<int> servers;
  int gpus = 8;
  std::string reliability = "default";
  ImportOutput output;
  Options options;
  options.add("servers", "N", "of the fleet that had the faults, where the file does not say",
              servers, Counted{1, 1 << 20});
  options.add("gpus-per-server", "N", "that a fault takes away (default: 8)", gpus,
              Counted{1, 1024});
  options.add("reliability", "NAME|FILE", "whose groups of failures they are (default: default)",
              reliability);
  add_output(options, output);
  if (!options.read(arguments,
                    "usage: orrery import faults FILE [options]\n\n"
                    "Reads when servers of a fleet were down; writes a profile of failures, for "
                    "--reliability."))
    return exit_ok;
  const std::string& file =
      options.only_word("nothing to import", "one record is one file", "name one file");
  const Reliability base = read_reliability(reliability, command_line / "reliability");
  const FaultTrace trace = read_fault_trace(file, servers, {file, ""});
  std::vector<std::string> notes{
      "faults are of servers, whether or not a job ran: what stops a job alone is not among them"};
  if (trace.length < 2.0 * base.month)
    notes.push_back("the record is shorter than two months, so that rates do not change by month");
  write_result(options, output, fault_profile_json(trace, base, gpus), notes);
  return exit_ok;
}

SystemDraft draft_of_nccl(const std::string& text, const std::string& file, const SystemAnswers&) {
  return read_nccl_topology(text, file);
}

}  // namespace

int run_import(const Arguments& arguments) {
  const auto system = [](const std::string& format, const std::string& what, ReadDraft read) {
    return Subcommand{
        format, [=](const Arguments& rest) { return import_system(rest, format, what, read); }};
  };
  std::vector<Subcommand> all{
      {"bench", import_bench},
      {"cluster", import_cluster},
      {"faults", import_faults},
      {"kineto", import_kineto},
      {"nccl-tests", import_nccl_tests},
      system("nccl-topo", "the file that NCCL_TOPO_DUMP_FILE names", draft_of_nccl),
      system("nvidia-smi-topo", "the output of nvidia-smi topo -m", read_smi_topology),
      {"server", import_server}};
  for (const Format& format : formats())
    all.push_back(
        {format.name, [&format](const Arguments& rest) { return import_recipe(format, rest); }});
  return run_subcommand(
      arguments, all,
      "usage: orrery import megatron FILE | torchtitan FILE | nanotron FILE | nemo FILE |\n"
      "                     automodel FILE |\n"
      "                     deepspeed FILE... | server FILE... | bench FILE... |\n"
      "                     nccl-tests FILE... | nccl-topo FILE | nvidia-smi-topo FILE |\n"
      "                     cluster --gpu NAME ... | faults FILE | kineto FILE...\n\n"
      "  orrery import FORMAT --help   the format's options\n",
      "import what?", "cannot be imported");
}

}  // namespace orrery
