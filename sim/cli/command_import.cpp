#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "sim/calibration/curve.hpp"
#include "sim/calibration/nccl_tests.hpp"
#include "sim/cli/import_output.hpp"
#include "sim/cli/options.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/text_file.hpp"
#include "sim/core/write_file.hpp"
#include "sim/formats/benchmarks/benchmark_result.hpp"
#include "sim/formats/deepspeed/deepspeed_run.hpp"
#include "sim/formats/inventory/cluster_words.hpp"
#include "sim/formats/inventory/nccl_topology.hpp"
#include "sim/formats/inventory/smi_topology.hpp"
#include "sim/formats/megatron/megatron_run.hpp"
#include "sim/formats/nanotron/nanotron_run.hpp"
#include "sim/formats/nemo/nemo_run.hpp"
#include "sim/formats/servers/server_reader.hpp"
#include "sim/formats/torchtitan/torchtitan_run.hpp"
#include "sim/profile/kernel_record.hpp"
#include "sim/reliability/fault_trace.hpp"
#include "sim/reliability/reliability_text.hpp"

namespace po = boost::program_options;

namespace orrery {

int import_bench(const Arguments& arguments) {
  po::options_description options{"Options", 100};
  const auto text = [](const char* value) { return po::value<std::string>()->value_name(value); };
  options.add_options()("plan", text("FILE"),
                        "the deployment that was measured, as orrery import server writes it")(
      "system", text("NAME|FILE"), "the cluster on which it ran");
  add_output_options(options);
  const ParsedOptions parsed = parse_options(options, arguments, {});
  if (parsed.has("help")) {
    std::cout << "usage: orrery import bench FILE... --plan DEPLOYMENT --system NAME [options]\n\n"
                 "Reads results of vLLM's and SGLang's benchmarks, AIPerf, GenAI-Perf, "
                 "inference-perf and\nInferenceX; writes cases for orrery validate and orrery "
                 "serve --runs.\n\n"
              << options;
    return exit_ok;
  }
  if (parsed.words.empty()) fail_input({}, "nothing to import", "name a result");
  std::optional<JsonValue> deployment;
  if (parsed.has("plan")) deployment = JsonValue::read_file(parsed.text("plan"));
  std::string cases;
  std::vector<std::string> notes;
  for (const std::string& file : parsed.words) {
    const std::vector<BenchmarkResult> results = read_benchmark_results(read_text_file(file), file);
    for (const BenchmarkResult& result : results)
      for (const std::string& note : result.notes) notes.push_back(file + ": " + note);
    cases += (cases.empty() ? "" : ",\n") +
             benchmark_cases(results, file, deployment,
                             parsed.has("system") ? parsed.text("system") : "");
  }
  write_result(parsed, "[\n" + cases + "\n]\n", notes);
  return exit_ok;
}

int import_cluster(const Arguments& arguments) {
  po::options_description options{"Options", 100};
  for (const ClusterOption& option : cluster_options())
    options.add_options()(option.name.c_str(), po::value<std::string>()->value_name(option.value),
                          option.help.c_str());
  add_output_options(options);
  const ParsedOptions parsed = parse_options(options, arguments, {});
  if (parsed.has("help")) {
    std::cout << "usage: orrery import cluster --gpu NAME --gpus-per-node N --nics NxRATE "
                 "[options]\n\n"
                 "Writes a system from a few words. What you leave open is assumed, and said.\n\n"
              << options;
    return exit_ok;
  }
  if (!parsed.words.empty())
    fail_input({}, "'" + parsed.words[0] + "' belongs to no option",
               "write --gpu NAME --gpus-per-node N --nics NxRATE");
  SystemAnswers words;
  for (const ClusterOption& option : cluster_options())
    if (parsed.has(option.name)) words[option.name] = parsed.text(option.name);
  if (!words.contains("name") && parsed.has("output"))
    words["name"] = std::filesystem::path{parsed.text("output")}.stem().string();
  const ImportedSystem imported = cluster_json(words);
  write_result(parsed, imported.json, imported.notes);
  return exit_ok;
}

int import_kineto(const Arguments& arguments) {
  po::options_description options{"Options", 100};
  const auto file = [] { return po::value<std::string>()->value_name("FILE"); };
  options.add_options()                                                                          //
      ("kernels", file(), "write the record there instead of to stdout, and say what is in it")  //
      ("names", file(), "what your kernels do, before workloads/kernel_names.json")              //
      ("force", "replace a file that Orrery did not write")("help", "this text");
  const ParsedOptions parsed = parse_options(options, arguments, {});
  if (parsed.has("help")) {
    std::cout << "usage: orrery import kineto FILE... [--kernels RECORD] [options]\n\n"
                 "Reads traces of PyTorch's profiler, written with record_shapes=True; writes how "
                 "long each\nshape of product and attention took, for orrery calibrate fit.\n\n"
              << options;
    return exit_ok;
  }
  if (parsed.words.empty()) fail_input({}, "nothing to import", "name one or more traces");
  const std::string output = parsed.has("kernels") ? parsed.text("kernels") : "";
  if (std::find(parsed.words.begin(), parsed.words.end(), output) != parsed.words.end())
    fail_input({"", "--kernels"}, "'" + output + "' is also what is read", "name another file");
  const KernelNames names{parsed.has("names") ? parsed.text("names") : ""};
  std::vector<KinetoTrace> traces;
  for (const std::string& word : parsed.words) traces.push_back(read_kineto(word));
  const TracedKernels traced = kernels_of_traces(traces, names);
  const std::string text = calibration::record_json(traced.record);
  if (output.empty()) {
    std::cout << text;
  } else {
    OutputFiles files{parsed.has("force")};
    files.add(output, text);
    files.commit();
    std::int64_t runs = 0;
    for (const calibration::Measurement& one : traced.record.measurements)
      runs += one.warm->samples;
    std::cout << output << ": " << grouped(std::ssize(traced.record.measurements)) << " shapes, "
              << grouped(runs) << " runs, on " << traced.record.machine.gpu << "\n";
  }
  for (const std::string& note : traced.notes) std::cerr << "orrery: note: " << note << "\n";
  return exit_ok;
}

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

int import_server(const Arguments& arguments) {
  po::options_description options{"Options", 100};
  const auto text = [](const char* value) { return po::value<std::string>()->value_name(value); };
  options.add_options()("model", text("NAME|FILE"), "in place of the model that is named")(
      "engine", text("NAME"), "another release of the engine: orrery list engines")(
      "system", text("NAME|FILE"), "the cluster on which it runs, written to the file")(
      "accepted", text("RATE"),
      "in how many steps drafted tokens are accepted, which no command says "
      "(docs/guides/serve.md)");
  add_setting_options(options);
  add_output_options(options);
  const ParsedOptions parsed = parse_options(options, arguments, {});
  if (parsed.has("help")) {
    std::cout << "usage: orrery import server FILE... [options]\n\n"
                 "Reads a script with vllm serve, sglang.launch_server, trtllm-serve or Dynamo's "
                 "workers, and the\nfiles of settings that these name; writes a deployment, for "
                 "orrery serve --plan.\n\n"
              << options;
    return exit_ok;
  }
  if (parsed.words.empty()) fail_input({}, "nothing to import", "name a script");
  std::vector<RecipeFile> files;
  for (const std::string& path : parsed.words) files.push_back({read_text_file(path), path});
  RecipeAnswers answers;
  if (parsed.has("model")) answers.model = parsed.text("model");
  answers.set = given_values(parsed);
  for (const char* name : {"engine", "system", "accepted"})
    if (parsed.has(name)) answers.set[name] = parsed.text(name);
  answers.other_file = text_if_there;
  const ImportedRun run = import_servers(files, answers);
  write_result(parsed, run.json, run.notes);
  return exit_ok;
}

namespace {

int count_of(const ParsedOptions& parsed, const std::string& name) {
  if (!parsed.has(name)) return 0;
  constexpr int most = 10'000'000;
  const auto count = plain_integer(parsed.text(name), most);
  if (!count || *count == 0)
    fail_input({"", "--" + name}, "is not a count from 1 to 10,000,000", "write a whole number");
  return *count;
}

int import_nccl_tests(const Arguments& arguments) {
  po::options_description options{"Options", 100};
  const auto text = [] { return po::value<std::string>()->value_name("NAME"); };
  const auto count = [] { return po::value<std::string>()->value_name("N"); };
  options.add_options()("collective", text(), "what ran, where neither log nor file name says it")(
      "system", text(), "what the machine is called")("ranks", count(), "where no line names them")(
      "nodes", count(), "where hosts cannot be counted");
  add_output_options(options);
  const ParsedOptions parsed = parse_options(options, arguments, {});
  if (parsed.has("help")) {
    std::cout
        << "usage: orrery import nccl-tests FILE... [options]\n\n"
           "Reads the text output of nccl-tests or its -J file; writes curves (bytes, time).\n\n"
        << options;
    return exit_ok;
  }
  if (parsed.words.empty()) fail_input({}, "nothing to import", "name one or more files");
  NcclTestsAnswers answers;
  if (parsed.has("collective")) answers.collective = parsed.text("collective");
  if (parsed.has("system")) answers.system = parsed.text("system");
  answers.ranks = count_of(parsed, "ranks");
  answers.nodes = count_of(parsed, "nodes");
  std::vector<Curve> curves;
  for (const std::string& file : parsed.words)
    for (Curve& curve : read_nccl_tests(read_text_file(file), file, answers))
      curves.push_back(std::move(curve));
  write_result(parsed, curves_json(curves), {});
  for (const Curve& curve : curves) {
    std::cerr << curve.file << ": " << curve.collective << ", " << curve.ranks << " ranks on "
              << curve.nodes << (curve.nodes == 1 ? " node, " : " nodes, ") << curve.points.size()
              << " sizes\n";
    for (const std::string& warning : curve.warnings)
      std::cerr << "orrery: warning: " << curve.file << ": " << warning << "\n";
  }
  return exit_ok;
}

int import_megatron(const Arguments& arguments) {
  po::options_description options{"Options", 100};
  options.add_options()("name", po::value<std::string>()->value_name("NAME"),
                        "what to call the model (default: the file's name)");
  add_script_options(options);
  add_output_options(options);
  const ParsedOptions parsed = parse_options(options, arguments, {});
  if (parsed.has("help")) {
    std::cout << "usage: orrery import megatron FILE [options]\n\n"
                 "Reads a launch script of Megatron-LM, or the list of arguments that it prints; "
                 "writes a plan\nwith its model, for --plan and --model.\n\n"
              << options;
    return exit_ok;
  }
  if (parsed.words.size() != 1)
    fail_input({}, parsed.words.empty() ? "nothing to import" : "one run is one file",
               "name one file");
  const std::string& file = parsed.words[0];
  const std::string name =
      parsed.has("name") ? parsed.text("name") : std::filesystem::path{file}.stem().string();
  const ImportedRun run = import_megatron_run(read_launch_script(file, parsed), name);
  write_result(parsed, run.json, run.notes);
  return exit_ok;
}

using ReadDraft = SystemDraft (*)(const std::string& text, const std::string& file,
                                  const SystemAnswers& answers);

int import_system(const Arguments& arguments, const std::string& format, const std::string& what,
                  ReadDraft read) {
  po::options_description options{"Options", 100};
  for (const auto& [name, meaning] : system_answer_options())
    options.add_options()(name.c_str(), po::value<std::string>()->value_name("VALUE"),
                          meaning.c_str());
  add_output_options(options);
  const ParsedOptions parsed = parse_options(options, arguments, {});
  if (parsed.has("help")) {
    std::cout << "usage: orrery import " << format << " FILE [options]\n\nReads " << what
              << "; writes a system.\n\n"
              << options;
    return exit_ok;
  }
  if (parsed.words.size() != 1)
    fail_input({}, parsed.words.empty() ? "nothing to import" : "one system is one file",
               "name one file");
  SystemAnswers answers;
  for (const auto& [name, unused] : system_answer_options())
    if (parsed.has(name)) answers[name] = parsed.text(name);
  const std::string& file = parsed.words[0];
  const ImportedSystem imported = system_json(read(read_text_file(file), file, answers), answers);
  write_result(parsed, imported.json, imported.notes);
  return exit_ok;
}

int import_faults(const Arguments& arguments) {
  po::options_description options{"Options", 100};
  const auto text = [](const char* shown) { return po::value<std::string>()->value_name(shown); };
  options.add_options()("servers", text("N"), "of the fleet, where the file does not say")(
      "gpus-per-server", text("N"), "that a fault takes away (default: 8)")(
      "reliability", text("NAME|FILE"), "whose groups of failures they are (default: default)");
  add_output_options(options);
  const ParsedOptions parsed = parse_options(options, arguments, {});
  if (parsed.has("help")) {
    std::cout << "usage: orrery import faults FILE [options]\n\n"
                 "Reads when servers of a fleet were down; writes a profile of failures, for "
                 "--reliability.\n\n"
              << options;
    return exit_ok;
  }
  if (parsed.words.size() != 1)
    fail_input({}, parsed.words.empty() ? "nothing to import" : "one record is one file",
               "name one file");
  constexpr int most_servers = 1 << 20, most_gpus = 1024;
  std::optional<int> servers;
  if (parsed.has("servers"))
    servers = parse_count(parsed.text("servers"), "servers", 1, most_servers);
  const int gpus = parsed.has("gpus-per-server") ? parse_count(parsed.text("gpus-per-server"),
                                                               "gpus-per-server", 1, most_gpus)
                                                 : 8;
  const Reliability base = read_reliability(
      parsed.has("reliability") ? parsed.text("reliability") : "default", {"--reliability", ""});
  const FaultTrace trace = read_fault_trace(parsed.words[0], servers, {parsed.words[0], ""});
  std::vector<std::string> notes{
      "faults are of servers, whether or not a job ran: what stops a job alone is not among them"};
  if (trace.length < 2.0 * base.month)
    notes.push_back("the record is shorter than two months, so that rates do not change by month");
  write_result(parsed, fault_profile_json(trace, base, gpus), notes);
  return exit_ok;
}

SystemDraft draft_of_nccl(const std::string& text, const std::string& file, const SystemAnswers&) {
  return read_nccl_topology(text, file);
}

}  // namespace

int run_import(const Arguments& arguments) {
  std::vector<std::string> formats{"bench",     "cluster",         "faults",
                                   "kineto",    "megatron",        "nccl-tests",
                                   "nccl-topo", "nvidia-smi-topo", "server"};
  for (const std::string& recipe : recipe_formats()) formats.push_back(recipe);
  CommandListener::tell(formats);
  const std::string format = arguments.empty() ? "" : arguments[0];
  if (format == "--help") {
    std::cout
        << "usage: orrery import megatron FILE | torchtitan FILE | nanotron FILE | nemo FILE |\n"
           "                     deepspeed FILE... | server FILE... | bench FILE... |\n"
           "                     nccl-tests FILE... | nccl-topo FILE | nvidia-smi-topo FILE |\n"
           "                     cluster --gpu NAME ... | faults FILE | kineto FILE...\n\n"
           "  orrery import FORMAT --help   the format's options\n";
    return exit_ok;
  }
  if (std::find(formats.begin(), formats.end(), format) == formats.end())
    fail_input({}, format.empty() ? "import what?" : "'" + format + "' cannot be imported",
               suggestion(format, formats));
  const Arguments rest{arguments.begin() + 1, arguments.end()};
  if (format == "cluster") return import_cluster(rest);
  if (format == "faults") return import_faults(rest);
  if (format == "kineto") return import_kineto(rest);
  if (format == "megatron") return import_megatron(rest);
  if (format == "bench") return import_bench(rest);
  if (format == "server") return import_server(rest);
  if (format == "nccl-tests") return import_nccl_tests(rest);
  if (format == "nccl-topo")
    return import_system(rest, format, "the file that NCCL_TOPO_DUMP_FILE names", draft_of_nccl);
  if (format == "nvidia-smi-topo")
    return import_system(rest, format, "the output of nvidia-smi topo -m", read_smi_topology);
  return import_recipe(format, rest);
}

}  // namespace orrery
