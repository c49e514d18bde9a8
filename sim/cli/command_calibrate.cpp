#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "calibration/host/options.hpp"
#include "calibration/host/work_list.hpp"
#include "sim/calibration/shapes.hpp"
#include "sim/cli/calibrate_fit.hpp"
#include "sim/cli/calibrate_step.hpp"
#include "sim/cli/option_table.hpp"
#include "sim/cli/options.hpp"
#include "sim/core/flag_value.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/write_file.hpp"
#include "sim/plan/plan_keys.hpp"

namespace fs = std::filesystem;
namespace po = boost::program_options;

namespace orrery {
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
         "there was no CUDA toolkit to build it with (docs/CALIBRATION.md)\n";
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
