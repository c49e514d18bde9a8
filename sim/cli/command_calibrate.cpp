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

namespace fs = std::filesystem;

namespace orrery {
namespace {

using Texts = std::vector<std::string>;

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

std::vector<Curve> read_logs(const Texts& files, const NcclTestsAnswers& answers) {
  std::vector<Curve> curves;
  for (const std::string& file : files)
    for (Curve& curve : read_nccl_tests(read_text_file(file), file, answers))
      curves.push_back(std::move(curve));
  return curves;
}

Calibration read_calibration(const std::string& file) {
  return parse_calibration(JsonValue::read_file(file), file);
}

// A GPU's name means the tables that come with the project; all else is a file.
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
  Texts logs;
  std::optional<std::string> to;
  FitOptions how;
  NcclTestsAnswers answers;
  bool force = false;
  Options options;
  options.add({"nccl", "LOG..", "logs of nccl-tests, text or JSON", "",
               [&](const std::string& log, const Place&) { logs.push_back(log); }, true, true});
  options.add("output", "FILE", "the calibration (also -o FILE)", to);
  options.add("force", "replace files that Orrery did not write", force);
  options.add("gpu", "NAME|FILE", "the GPU, where the catalog does not know its name", how.gpu);
  options.add("own-attention", "take attention from orrery-gpu's own kernels, as its step runs",
              how.own_attention);
  options.add("gpus-per-node", "N", "where a record spans nodes", how.gpus_per_node,
              Counted{1, 1 << 16});
  options.add("collective", "NAME", "what ran, where no log says it", answers.collective);
  options.add("ranks", "N", "where no log names them", answers.ranks, Counted{1, 1 << 24});
  options.add("nodes", "N", "where no log lets hosts be counted", answers.nodes,
              Counted{1, 1 << 24});
  options.help();
  if (!options.read(arguments,
                    "usage: orrery calibrate fit [RECORD...] [--nccl LOG...] -o FILE [options]\n\n"
                    "Fits kernel times and collectives to records of orrery-gpu and logs of\n"
                    "nccl-tests, all of one kind of GPU; orrery estimate --calibration FILE uses "
                    "it."))
    return exit_ok;
  const Texts& records = options.words();
  if (records.empty() && logs.empty())
    fail_input({}, "nothing to fit", "name a record, or logs: --nccl LOG");
  const std::string output = options.required("output", "say where it goes: -o mycluster.json");
  for (const Texts& inputs : {records, logs})
    if (std::find(inputs.begin(), inputs.end(), output) != inputs.end())
      fail_input(command_line / "output", "'" + output + "' is also what is read",
                 "name another file");
  const CalibrationFit fit = fit_calibration(read_records(records), read_logs(logs, answers), how);
  const std::string document = calibration_json(fit);
  // The text reads back what will be read from the file.
  const Calibration calibration = parse_calibration(JsonValue::parse(document, output), output);
  write_output(output, document, force);
  std::cout << calibration_text(calibration, assess(calibration)) << fit_text(fit);
  return exit_ok;
}

int calibrate_show(const Arguments& arguments) {
  std::optional<std::string> svg;
  bool force = false;
  Options options;
  options.add("svg", "FILE", "draw achieved against predicted rates", svg);
  options.add("force", "replace files that Orrery did not write", force);
  options.help();
  if (!options.read(arguments, "usage: orrery calibrate show FILE|GPU [--svg FILE]"))
    return exit_ok;
  const std::string& file =
      options.only_word("show what?", "one calibration at a time",
                        "name a file that orrery calibrate fit wrote, or a GPU of the catalog");
  const Calibration calibration = named_calibration(file);
  const std::vector<AssessedTable> tables = assess(calibration);
  if (svg) {
    if (*svg == file)
      fail_input(command_line / "svg", "'" + *svg + "' is also what is read", "name another file");
    write_output(*svg, calibration_chart(calibration, tables), force);
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
  std::optional<std::string> calibration, named;
  Options options;
  options.add("calibration", "FILE",
              "predict with this: orrery calibrate fit --own-attention; else with the tables of "
              "the GPU",
              calibration);
  options.add("system", "NAME|FILE", "whose GPU it is, where the catalog cannot tell", named);
  options.help();
  if (!options.read(arguments,
                    "usage: orrery calibrate step RECORD [--calibration FILE] [options]\n\n"
                    "Predicts the training steps that orrery-gpu measured."))
    return exit_ok;
  const std::string& file =
      options.only_word("which steps?", "one record at a time", "name a record of orrery-gpu");
  const calibration::Record record = calibration::parse_record(read_text_file(file), file);
  std::string gpu = catalog_gpu(record.machine.gpu);
  if (calibration) gpu = read_calibration(*calibration).gpu;
  if (gpu.empty() && !named)
    fail_input({file, "/machine/gpu"}, "'" + record.machine.gpu + "' is not a GPU of the catalog",
               "give --calibration FILE or --system NAME|FILE");
  System system = named ? read_system(*named, command_line / "system") : system_of(gpu);
  require_same_gpu(record.machine, system.gpu, file,
                   "give --system NAME|FILE: orrery list systems");
  if (calibration) calibrate(system, *calibration, command_line / "calibration");
  const std::vector<MeasuredStep> steps = predict_steps(record, file, system);
  std::cout << "Steps of      " << file << ", " << record.machine.gpu << "\nPredicted by  "
            << calibration.value_or("the tables of " + system.gpu.name) << "\n\n"
            << measured_steps_text(steps);
  return exit_ok;
}

namespace {

// Only plan defaults depend on it; shapes do not.
constexpr const char* any_system = "dgx-h100";

std::vector<int> parse_tp(const std::string& text, const Place&) {
  std::vector<int> degrees;
  for (const std::string& degree : split(text, ","))
    degrees.push_back(static_cast<int>(value_of_flag("tp", degree).integer(1, 1024)));
  return degrees;
}

// Shapes to measure, and how, as options say it.
struct GpuOptions {
  std::optional<std::string> model, shapes;
  std::vector<int> degrees{1};
  PlanRequest request;
  bool lists = false;
};

std::vector<calibration::Case> wanted_shapes(const GpuOptions& given) {
  const Model model = read_model(*given.model, command_line / "model");
  const System system = read_system(any_system, command_line / "system");
  std::vector<calibration::Case> cases;
  for (const int tp : given.degrees) {
    PlanRequest request = given.request;
    request.tp = tp;
    request.dp = 1;
    request.mbs = request.mbs.value_or(1);
    request.gbs = request.mbs;
    merge_shapes(cases, shapes_of(make_scenario(model, system, request, 0, {})));
  }
  return cases;
}

// $ORRERY_GPU, else the program next to this one, else the one that the shell would find.
std::string measuring_program() {
  if (const char* named = std::getenv("ORRERY_GPU")) return named;
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error);
  const fs::path sibling = own.parent_path() / "orrery-gpu";
  return !error && fs::exists(sibling) ? sibling.string() : "orrery-gpu";
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

int measure(const Options& options, const std::string& shapes) {
  std::vector<std::string> words{measuring_program(), "measure"};
  for (const char* option : {"output", "kinds", "time-limit", "time", "noise", "device"})
    if (options.has(option)) {
      words.push_back(std::string{"--"} + option);
      words.push_back(options.text(option));
    }
  if (options.has("resume")) words.emplace_back("--resume");
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

void add_measuring(Options& options, GpuOptions& into) {
  const auto of_plan = [&into](const char* key) -> Take {
    return [&into, key](const std::string& text, const Place&) {
      set_plan_flag(into.request, key, text);
    };
  };
  options.add("model", "NAME|FILE", "measure the shapes of this model's layers", into.model);
  options.add("tp", "LIST", "split over so many ranks, each in turn (default 1)", into.degrees,
              parse_tp);
  options.add("seq", "N", "tokens of a sequence (default: as in pre-training)", of_plan("seq"));
  options.add("mbs", "N", "sequences of a micro-batch (default 1)", of_plan("mbs"));
  options.add("dtype", "bf16|fp16|fp8", "of the products (default bf16)", of_plan("dtype"));
  options.add("shapes", "FILE", "measure this work list instead", into.shapes);
  options.add("list", "print the work list and measure nothing", into.lists);
  options.add("output", "FILE", "the record (default calibration-record.json; also -o FILE)");
  options.add("resume", "continue that record");
  options.add("time-limit", "TIME", "stop after this, as 5m, and keep what there is");
  options.add("kinds", "LIST", "only these kinds of measurement");
  options.add("time", "TIME", "at most this long a case, as 1s");
  options.add("noise", "SHARE", "repeat until medians are known this well, as 0.005");
  options.add("device", "N", "the GPU (default 0)");
  options.help();
}

int calibrate_gpu(const Arguments& arguments) {
  GpuOptions given;
  Options options;
  add_measuring(options, given);
  if (!options.read(arguments,
                    "usage: orrery calibrate gpu [--model NAME --tp 1,2,4,8] [options]\n\n"
                    "Measures kernels, transfers and collectives on the GPUs of this machine with\n"
                    "orrery-gpu. Exits 77 where there is none."))
    return exit_ok;
  options.refuse_words("see --help", "is one word too many");
  if (!given.model)
    options.refuse({"tp", "seq", "mbs", "dtype"}, "says nothing without a model",
                   "add --model NAME");
  if (given.model && given.shapes)
    fail_input({}, "--model and --shapes exclude each other", "keep one of them");
  if (given.shapes && given.lists)
    fail_input({}, "--shapes and --list exclude each other", "keep one of them");
  if (!given.model && !given.lists) return measure(options, given.shapes.value_or(""));
  std::vector<calibration::Case> cases =
      given.model ? wanted_shapes(given) : calibration::default_work_list(1);
  if (given.lists) {
    if (options.has("kinds"))
      cases = of_kinds(cases, calibration::parse_kinds(options.text("kinds"), "--kinds"));
    return std::cout << calibration::work_list_json(cases), exit_ok;
  }
  const TemporaryFile file{calibration::work_list_json(cases)};
  return measure(options, file.path());
}

}  // namespace

int run_calibrate(const Arguments& arguments) {
  return run_subcommand(arguments,
                        {{"fit", calibrate_fit},
                         {"gpu", calibrate_gpu},
                         {"show", calibrate_show},
                         {"step", calibrate_step}},
                        "usage: orrery calibrate gpu | fit RECORD... -o FILE | show FILE|GPU | "
                        "step RECORD\n\n"
                        "  gpu    measure the GPUs of this machine\n"
                        "  fit    turn such records and logs of nccl-tests into a calibration\n"
                        "  show   what a calibration holds, and how well it predicts itself\n"
                        "  step   the training steps of a record, predicted\n\n"
                        "  orrery calibrate WORD --help   its options\n",
                        "calibrate what?", "is nothing to calibrate");
}

}  // namespace orrery
