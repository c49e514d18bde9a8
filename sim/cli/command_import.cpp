#include <algorithm>
#include <filesystem>
#include <iostream>

#include "sim/calibration/collective_name.hpp"
#include "sim/calibration/nccl_tests.hpp"
#include "sim/cli/import_bench.hpp"
#include "sim/cli/import_cluster.hpp"
#include "sim/cli/import_kineto.hpp"
#include "sim/cli/import_output.hpp"
#include "sim/cli/import_recipe.hpp"
#include "sim/cli/import_server.hpp"
#include "sim/cli/launch_script.hpp"
#include "sim/cli/option_table.hpp"
#include "sim/cli/options.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/text_file.hpp"
#include "sim/formats/inventory/nccl_topology.hpp"
#include "sim/formats/inventory/smi_topology.hpp"
#include "sim/formats/megatron/megatron_run.hpp"
#include "sim/reliability/fault_profile_json.hpp"
#include "sim/reliability/fault_trace.hpp"

namespace po = boost::program_options;

namespace orrery {
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
