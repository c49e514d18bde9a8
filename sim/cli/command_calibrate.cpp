#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "calibration/host/options.hpp"
#include "calibration/host/work_list.hpp"
#include "sim/calibration/calibration_text.hpp"
#include "sim/calibration/fit.hpp"
#include "sim/calibration/nccl_tests.hpp"
#include "sim/calibration/shapes.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/options.hpp"
#include "sim/core/catalog.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/text_file.hpp"
#include "sim/core/value_list.hpp"
#include "sim/core/write_file.hpp"
#include "sim/measurements/calibration.hpp"
#include "sim/plan/plan_keys.hpp"

namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace orrery {
namespace {

using Texts = std::vector<std::string>;

po::typed_value<std::string>* text(const char* name) {
  return po::value<std::string>()->value_name(name);
}

std::vector<NamedRecord> read_records(const Texts& files) {
  std::vector<NamedRecord> records;
  for (const std::string& file : files) {
    const std::string content = read_text_file(file);
    const std::size_t begin = content.find_first_not_of(" \t\r\n");
    if (begin != content.npos && content[begin] == '#')
      fail_input({file, ""}, "is not a record of orrery-gpu",
                 "if it is a log of nccl-tests, write --nccl " + file);
    records.push_back({file, calibration::parse_record(content, file)});
  }
  return records;
}

std::vector<Curve> read_logs(const Texts& files, const ParsedOptions& parsed) {
  NcclTestsAnswers answers;
  if (parsed.has("collective")) answers.collective = parsed.text("collective");
  if (parsed.has("ranks")) answers.ranks = parse_count(parsed.text("ranks"), "ranks", 1, 1 << 24);
  if (parsed.has("nodes")) answers.nodes = parse_count(parsed.text("nodes"), "nodes", 1, 1 << 24);
  std::vector<Curve> curves;
  for (const std::string& file : files)
    for (Curve& curve : read_nccl_tests(read_text_file(file), file, answers))
      curves.push_back(std::move(curve));
  return curves;
}

Calibration read_calibration(const std::string& file) {
  return parse_calibration(JsonValue::read_file(file), file);
}

// A GPU's name stands for the tables that come with the project; all else is a file.
Calibration named_calibration(const std::string& word) {
  const std::vector<std::string> gpus = list_catalog("topologies/gpus");
  if (std::find(gpus.begin(), gpus.end(), word) == gpus.end()) return read_calibration(word);
  std::optional<KernelTables> tables = read_kernel_tables(word);
  if (!tables || tables->gemm.empty())
    fail_input({}, "no kernels of '" + word + "' were measured",
               "measure some: orrery calibrate gpu");
  Calibration shipped;
  shipped.file = "calibration/data/kernels/" + tables->gpu + ".json";
  shipped.gpu = word + (tables->gpu == word ? "" : ", for which " + tables->gpu + " stands in");
  shipped.kernels = std::move(tables);
  return shipped;
}

}  // namespace

int calibrate_fit(const Arguments& arguments) {
  po::options_description options{"Options", 100};
  options.add_options()  //
      ("nccl", po::value<Texts>()->multitoken()->composing()->value_name("LOG.."),
       "logs of nccl-tests, text or JSON")                                                 //
      ("output", text("FILE"), "the calibration (also -o FILE)")                           //
      ("force", "replace a file that Orrery did not write")                                //
      ("gpu", text("NAME|FILE"), "the GPU, where the catalog does not know its name")      //
      ("own-attention", "take attention from orrery-gpu's own kernels, as its step runs")  //
      ("gpus-per-node", text("N"), "where a record spans nodes")                           //
      ("collective", text("NAME"), "what ran, where no log says it")                       //
      ("ranks", text("N"), "where no log names them")                                      //
      ("nodes", text("N"), "where no log lets hosts be counted")                           //
      ("help", "this text");
  const ParsedOptions parsed = parse_options(options, arguments, {});
  if (parsed.has("help")) {
    std::cout
        << "usage: orrery calibrate fit [RECORD...] [--nccl LOG...] -o FILE [options]\n\n"
           "Fits kernel times and collectives to records of orrery-gpu and logs of\n"
           "nccl-tests, all of one kind of GPU; orrery estimate --calibration FILE uses it.\n\n"
        << options;
    return exit_ok;
  }
  const Texts logs = parsed.has("nccl") ? parsed.values["nccl"].as<Texts>() : Texts{};
  if (parsed.words.empty() && logs.empty())
    fail_input({}, "nothing to fit", "name a record, or logs: --nccl LOG");
  const std::string output = required(parsed, "output", "say where it goes: -o mycluster.json");
  for (const Texts& inputs : {parsed.words, logs})
    if (std::find(inputs.begin(), inputs.end(), output) != inputs.end())
      fail_input({"", "--output"}, "'" + output + "' is also what is read", "name another file");
  FitOptions how;
  if (parsed.has("gpu")) how.gpu = parsed.text("gpu");
  how.own_attention = parsed.has("own-attention");
  if (parsed.has("gpus-per-node"))
    how.gpus_per_node = parse_count(parsed.text("gpus-per-node"), "gpus-per-node", 1, 1 << 16);
  const CalibrationFit fit =
      fit_calibration(read_records(parsed.words), read_logs(logs, parsed), how);
  const std::string document = calibration_json(fit);
  // What was fitted is what will be read.
  const Calibration calibration = parse_calibration(JsonValue::parse(document, output), output);
  OutputFiles files{parsed.has("force")};
  files.add(output, document);
  files.commit();
  std::cout << calibration_text(calibration, assess(calibration)) << fit_text(fit);
  return exit_ok;
}

int calibrate_show(const Arguments& arguments) {
  po::options_description options{"Options", 100};
  options.add_options()("svg", text("FILE"), "draw achieved against predicted rates")(
      "force", "replace a file that Orrery did not write")("help", "this text");
  const ParsedOptions parsed = parse_options(options, arguments, {});
  if (parsed.has("help")) {
    std::cout << "usage: orrery calibrate show FILE|GPU [--svg FILE]\n\n" << options;
    return exit_ok;
  }
  if (parsed.words.size() != 1)
    fail_input({}, parsed.words.empty() ? "show what?" : "one calibration at a time",
               "name a file that orrery calibrate fit wrote, or a GPU of the catalog");
  const Calibration calibration = named_calibration(parsed.words.front());
  const std::vector<AssessedTable> tables = assess(calibration);
  if (parsed.has("svg")) {
    if (parsed.text("svg") == parsed.words.front())
      fail_input({"", "--svg"}, "'" + parsed.text("svg") + "' is also what is read",
                 "name another file");
    OutputFiles files{parsed.has("force")};
    files.add(parsed.text("svg"), calibration_chart(calibration, tables));
    files.commit();
  }
  std::cout << calibration_text(calibration, tables);
  return exit_ok;
}

namespace {

// Any system that has this GPU: one GPU alone meets nothing else of it.
System system_of(const std::string& gpu) {
  for (const std::string& name : list_catalog("topologies/systems"))
    if (System system = read_system(name, {"", "--system"}); system.gpu.name == gpu) return system;
  fail_input({}, "no system of the catalog has the GPU '" + gpu + "'", "give --system NAME|FILE");
}

}  // namespace

int calibrate_step(const Arguments& arguments) {
  po::options_description options{"Options", 100};
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  options.add_options()  //
      ("calibration", text("FILE"),
       "predict with this: orrery calibrate fit "                                      //
       "--own-attention; else with the tables of the GPU")                             //
      ("system", text("NAME|FILE"), "whose GPU it is, where the catalog cannot tell")  //
      ("help", "this text");
  const ParsedOptions parsed = parse_options(options, arguments, {});
  if (parsed.has("help")) {
    std::cout << "usage: orrery calibrate step RECORD [--calibration FILE] [options]\n\n"
                 "Predicts the training steps that orrery-gpu measured.\n\n"
              << options;
    return exit_ok;
  }
  if (parsed.words.size() != 1)
    fail_input({}, parsed.words.empty() ? "which steps?" : "one record at a time",
               "name a record of orrery-gpu");
  const std::string& file = parsed.words.front();
  const calibration::Record record = calibration::parse_record(read_text_file(file), file);
  std::string gpu = catalog_gpu(record.machine.gpu);
  if (parsed.has("calibration")) {
    const std::string path = parsed.text("calibration");
    gpu = parse_calibration(JsonValue::read_file(path), path).gpu;
  }
  if (gpu.empty() && !parsed.has("system"))
    fail_input({file, "/machine/gpu"}, "'" + record.machine.gpu + "' is not a GPU of the catalog",
               "give --calibration FILE or --system NAME|FILE");
  System system =
      parsed.has("system") ? read_system(parsed.text("system"), {"", "--system"}) : system_of(gpu);
  require_same_gpu(record.machine, system.gpu, file,
                   "give --system NAME|FILE: orrery list systems");
  if (parsed.has("calibration"))
    calibrate(system, parsed.text("calibration"), {"", "--calibration"});
  const std::vector<MeasuredStep> steps = predict_steps(record, file, system);
  std::cout << "Steps of      " << file << ", " << record.machine.gpu << "\nPredicted by  "
            << (parsed.has("calibration") ? parsed.text("calibration")
                                          : "the tables of " + system.gpu.name)
            << "\n\n"
            << measured_steps_text(steps);
  return exit_ok;
}

namespace {

// Only plan defaults depend on it; shapes do not.
constexpr const char* any_system = "dgx-h100";

std::vector<int> parse_tp(const std::string& text) {
  std::vector<int> degrees;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    degrees.push_back(
        static_cast<int>(value_of_flag("tp", text.substr(at, comma - at)).integer(1, 1024)));
    at = comma + 1;
  }
  return degrees;
}

std::vector<calibration::Case> wanted_shapes(const ParsedOptions& parsed) {
  const Model model = read_model(parsed.text("model"), {"--model", ""});
  const System system = read_system(any_system, {"--system", ""});
  std::vector<calibration::Case> cases;
  for (const int tp : parse_tp(parsed.has("tp") ? parsed.text("tp") : "1")) {
    PlanRequest request;
    request.tp = tp;
    request.dp = 1;
    set_plan_flag(request, "mbs", parsed.has("mbs") ? parsed.text("mbs") : "1");
    request.gbs = request.mbs;
    if (parsed.has("seq")) set_plan_flag(request, "seq", parsed.text("seq"));
    if (parsed.has("dtype")) set_plan_flag(request, "dtype", parsed.text("dtype"));
    merge_shapes(cases, shapes_of(make_scenario(model, system, request, 0, {})));
  }
  return cases;
}

// Beside this program, or wherever the shell would find it; $ORRERY_GPU wins.
std::string measuring_program() {
  if (const char* named = std::getenv("ORRERY_GPU")) return named;
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error);
  const fs::path beside = own.parent_path() / "orrery-gpu";
  return !error && fs::exists(beside) ? beside.string() : "orrery-gpu";
}

constexpr int not_started = 127;

// The exit code of `words`; not_started where there is no such program. While it runs, an interrupt
// is its business: it keeps what it has measured.
int run_program(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::cout.flush();
  const auto before = std::signal(SIGINT, SIG_IGN);
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGINT, before);
    execvp(arguments[0], arguments.data());
    _exit(not_started);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) < 0) status = not_started << 8;
  std::signal(SIGINT, before);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text) {
    std::string pattern = (fs::temp_directory_path() / "orrery-shapes-XXXXXX").string();
    const int file = mkstemp(pattern.data());
    if (file < 0) fail_input({pattern, ""}, "cannot be written", "set TMPDIR to a folder that can");
    close(file);
    path_ = pattern;
    write_file(path_, text);
  }
  ~TemporaryFile() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

int measure(const ParsedOptions& parsed, const std::string& shapes) {
  std::vector<std::string> words{measuring_program(), "measure"};
  for (const char* option : {"output", "kinds", "budget", "time", "noise", "device"})
    if (parsed.has(option)) {
      words.push_back(std::string{"--"} + option);
      words.push_back(parsed.text(option));
    }
  if (parsed.has("resume")) words.emplace_back("--resume");
  if (!shapes.empty()) {
    words.emplace_back("--shapes");
    words.push_back(shapes);
  }
  const int code = run_program(words);
  if (code != not_started) return code;
  std::cerr
      << "orrery: no usable NVIDIA GPU: the program that measures, orrery-gpu, is not here, as "
         "there was no CUDA toolkit to build it with (docs/guides/calibrate.md)\n";
  return exit_no_hardware;
}

int calibrate_gpu(const Arguments& arguments) {
  po::options_description options{"Options", 100};
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  options.add_options()                                                                       //
      ("model", text("NAME|FILE"), "measure the shapes of this model's layers")               //
      ("tp", text("N,N,.."), "split over so many ranks, each in turn (default 1)")            //
      ("seq", text("N"), "tokens of a sequence (default: as in pre-training)")                //
      ("mbs", text("N"), "sequences of a micro-batch (default 1)")                            //
      ("dtype", text("bf16|fp16|fp8"), "of the products (default bf16)")                      //
      ("shapes", text("FILE"), "measure this work list instead")                              //
      ("list", "print the work list and measure nothing")                                     //
      ("output", text("FILE"), "the record (default calibration-record.json; also -o FILE)")  //
      ("resume", "continue that record")                                                      //
      ("budget", text("5m"), "stop after this time and keep what there is")                   //
      ("kinds", text("A,B"), "only these kinds of measurement")                               //
      ("time", text("1s"), "at most this long a case")                                        //
      ("noise", text("0.005"), "repeat until medians are known this well")                    //
      ("device", text("N"), "the GPU (default 0)")                                            //
      ("help", "this text");
  const ParsedOptions parsed = parse_options(options, arguments, {});
  if (parsed.has("help")) {
    std::cout << "usage: orrery calibrate gpu [--model NAME --tp 1,2,4,8] [options]\n\n"
                 "Measures kernels, transfers and collectives on the GPUs of this machine with\n"
                 "orrery-gpu. Exits 77 where there is none.\n\n"
              << options;
    return exit_ok;
  }
  if (!parsed.words.empty())
    fail_input({}, "'" + parsed.words[0] + "' is one word too many", "see --help");
  for (const char* option : {"tp", "seq", "mbs", "dtype"})
    if (parsed.has(option) && !parsed.has("model"))
      fail_input({"", std::string{"--"} + option}, "says nothing without a model",
                 "add --model NAME");
  if (parsed.has("model") && parsed.has("shapes"))
    fail_input({}, "--model and --shapes exclude each other", "keep one of them");
  if (parsed.has("shapes") && parsed.has("list"))
    fail_input({}, "--shapes and --list exclude each other", "keep one of them");
  if (!parsed.has("model") && !parsed.has("list"))
    return measure(parsed, parsed.has("shapes") ? parsed.text("shapes") : "");
  std::vector<calibration::Case> cases =
      parsed.has("model") ? wanted_shapes(parsed) : calibration::default_work_list(1);
  if (parsed.has("list")) {
    if (parsed.has("kinds"))
      cases = of_kinds(cases, calibration::parse_kinds(parsed.text("kinds"), "--kinds"));
    return std::cout << calibration::work_list_json(cases), exit_ok;
  }
  const TemporaryFile file{calibration::work_list_json(cases)};
  return measure(parsed, file.path());
}

}  // namespace

int run_calibrate(const Arguments& arguments) {
  static const std::vector<std::string> words{"fit", "gpu", "show", "step"};
  CommandListener::tell(words);
  const std::string word = arguments.empty() ? "" : arguments[0];
  if (word == "--help") {
    std::cout << "usage: orrery calibrate gpu | fit RECORD... -o FILE | show FILE|GPU | "
                 "step RECORD\n\n"
                 "  gpu    measure the GPUs of this machine\n"
                 "  fit    turn such records and logs of nccl-tests into a calibration\n"
                 "  show   what a calibration holds, and how well it predicts itself\n"
                 "  step   the training steps of a record, predicted\n\n"
                 "  orrery calibrate WORD --help   its options\n";
    return exit_ok;
  }
  const Arguments rest =
      arguments.empty() ? arguments : Arguments{arguments.begin() + 1, arguments.end()};
  if (word == "gpu") return calibrate_gpu(rest);
  if (word == "fit") return calibrate_fit(rest);
  if (word == "show") return calibrate_show(rest);
  if (word == "step") return calibrate_step(rest);
  fail_input({}, word.empty() ? "calibrate what?" : "'" + word + "' is nothing to calibrate",
             suggestion(word, words));
}

}  // namespace orrery
