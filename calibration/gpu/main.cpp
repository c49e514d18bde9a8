// orrery-gpu: options -> work list -> campaign -> record. Messages go to stderr.

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <thread>

#include "calibration/gpu/lab.hpp"
#include "calibration/gpu/team.hpp"
#include "calibration/gpu/training_step.hpp"
#include "calibration/host/options.hpp"
#include "calibration/host/work_list.hpp"

namespace orrery::calibration {
namespace {

enum ExitCode { ok = 0, failed = 1, bad_input = 2, partial = 5, no_gpu = 77, stopped = 130 };

volatile std::sig_atomic_t interruptions = 0;

// The first lets the case in hand end and the record be written; the second is the system's.
void interrupt(int signal) {
  interruptions = 1;
  std::signal(signal, SIG_DFL);
}

std::string text_of(const std::string& path) {
  std::ifstream in{path, std::ios::binary};
  if (!in) fail_input({path, ""}, "cannot be read", "check the path");
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// The old file, or the whole new one.
void write_whole(const std::string& path, const std::string& text) {
  const std::string part = path + ".part";
  {
    std::ofstream out{part, std::ios::binary};
    out << text;
    out.flush();
    if (!out) fail_input({path, ""}, "cannot be written", "choose another file or folder");
  }
  std::error_code error;
  std::filesystem::rename(part, path, error);
  if (error) fail_input({path, ""}, "cannot be written: " + error.message(), "choose another file");
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text;
}

std::vector<Case> cases_of(const Options& options, int gpus) {
  std::vector<Case> cases = options.shapes.empty()
                                ? default_work_list(options.ranks > 0 ? options.ranks : gpus)
                                : parse_work_list(text_of(options.shapes), options.shapes);
  cases = of_kinds(std::move(cases), options.kinds);
  if (options.ranks > 0)
    std::erase_if(cases, [&](const Case& one) {
      return !one.sizes.count("ranks") || one.size("ranks") != options.ranks;
    });
  if (cases.empty()) fail_input({"", "--kinds"}, "leave nothing to measure", "name others");
  return in_running_order(std::move(cases));
}

// One GPU, or the first of several.
class GpuBench : public Bench {
 public:
  GpuBench(Lab& lab, Team& team)
      : lab_{lab}, team_{team}, reference_{lab.cublas, shape()}, operands_{shape()} {
    require_right(matmul_error(reference_, operands_, lab.stopwatch.stream()),
                  matmul_tolerance(shape()));
  }

  Measurement measure(const Case& what, const StoppingLimits& limits) override {
    Measurement one;
    try {
      one = measured(what, limits);
    } catch (const Unsupported& reason) {
      one.outcome = Outcome::skipped;
      one.reason = reason.what();
    } catch (const DeviceError& error) {
      one.outcome = Outcome::failed;
      one.reason = error.what();
      CUDA_CHECK(cudaDeviceSynchronize());  // A GPU that no longer answers ends the campaign.
    }
    one.what = what;
    return one;
  }

  double reference_us() override {
    return lab_.stopwatch.quick_us(
        [&](cudaStream_t stream) {
          reference_.run(operands_.a.data(), operands_.b.data(), operands_.c.data(), stream);
        },
        11);
  }
  double now_s() override {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  void rest(double seconds) override {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }
  bool interrupted() override { return interruptions != 0; }

 private:
  static MatmulShape shape() { return {MatmulShape::Pass::forward, 4096, 4096, 4096, "bf16"}; }

  Measurement measured(const Case& what, const StoppingLimits& limits) {
    if (what.kind == "gemm") return measure_gemm(what, limits, lab_);
    if (what.kind == "grouped_gemm") return measure_grouped_gemm(what, limits, lab_);
    if (what.kind == "attention") return measure_attention(what, limits, lab_);
    if (what.kind == "memory") return measure_memory(what, limits, lab_);
    if (what.kind == "launch") return measure_launch(what, limits, lab_);
    if (what.kind == "transfer") return measure_transfer(what, limits, lab_);
    if (what.kind == "overlap") return measure_overlap(what, limits, lab_);
    if (what.kind == "sustained") return measure_sustained(what, limits, lab_);
    return team_.measure(what, limits);
  }

  Lab& lab_;
  Team& team_;
  Matmul reference_;
  MatmulOperands operands_;
};

std::string command_line(const std::vector<std::string>& arguments) {
  std::string line = "orrery-gpu";
  for (const std::string& word : arguments) line += " " + word;
  return line;
}

// A terminal gets one line that is written over, a log a line a measurement.
void show(const Progress& progress) {
  static const bool terminal = isatty(STDERR_FILENO) == 1;
  const std::string text = progress_text(progress);
  if (terminal)
    std::cerr << "\r\033[K" << text << (progress.done == progress.all ? "\n" : "") << std::flush;
  else
    std::cerr << text << "\n";
}

int run_measure(const Options& options, const std::vector<std::string>& arguments, int gpus) {
  const std::vector<Case> cases = cases_of(options, gpus);
  const bool first = options.rank == 0;
  Record record;
  const bool exists = std::filesystem::exists(options.output);
  if (first && exists && !options.resume)
    fail_input({options.output, ""}, "exists already",
               "continue it with --resume, or name another with -o");
  Lab lab{options.device};
  if (first && exists) {
    record = parse_record(text_of(options.output), options.output);
    require_same_machine(record, lab.machine, options.output);
  } else {
    record.machine = lab.machine;
    record.command = command_line(arguments);
    record.program = std::string{"orrery-gpu "} + ORRERY_VERSION;
    record.started = utc_now();
  }
  record.limits.noise = options.noise;
  record.limits.time_s = options.time_s;
  const std::unique_ptr<Team> team =
      options.ranks > 0
          ? std::make_unique<Team>(options.rank, options.ranks, options.device, options.bootstrap)
          : std::make_unique<Team>();
  if (!first) return team->serve(), ok;

  std::signal(SIGINT, interrupt);
  std::signal(SIGTERM, interrupt);
  GpuBench bench{lab, *team};
  std::cerr << record.machine.gpu << ", " << cases.size() << " cases -> " << options.output << "\n";
  CampaignPlan plan;
  plan.cases = cases;
  plan.budget_s = options.budget_s;
  const CampaignEnd end = run_campaign(
      record, plan, bench,
      [&](const Record& so_far) { write_whole(options.output, record_json(so_far)); }, show);
  team->dismiss();
  std::cerr << options.output << ": " << end.measured << " measured, " << end.skipped
            << " skipped, " << end.failed << " failed";
  if (end.left > 0) std::cerr << ", " << end.left << " left: continue with --resume";
  std::cerr << "\n";
  for (const Measurement& one : record.measurements)
    if (one.outcome == Outcome::failed)
      std::cerr << "  failed: " << one.what.id() << ": " << one.reason << "\n";
  return end.interrupted ? stopped : end.failed > 0 ? partial : ok;
}

int run_info(int gpus) {
  for (int device = 0; device < gpus; ++device) {
    Nvml nvml;
    const Machine machine = describe_machine(device, nvml);
    std::cout << device << "  " << machine.gpu << ", compute capability "
              << machine.compute_capability << ", " << machine.multiprocessors
              << " multiprocessors, " << (machine.memory_bytes >> 20) << " MiB, L2 "
              << (machine.l2_bytes >> 20) << " MiB; driver " << machine.driver << ", CUDA "
              << machine.cuda_runtime << ", cuBLASLt " << machine.cublas << ", NCCL "
              << (machine.nccl.empty() ? "none" : machine.nccl) << "\n";
  }
  return ok;
}

int run(const std::vector<std::string>& arguments) {
  const Options options = parse_options(arguments);
  if (options.command == "help") return std::cout << usage(), ok;
  if (options.command == "version") return std::cout << "orrery-gpu " << ORRERY_VERSION << "\n", ok;
  if (options.command == "list")  // Also where there is no GPU: as if there were one.
    return std::cout << work_list_json(cases_of(options, 1)), ok;
  const int gpus = usable_gpus();
  if (gpus == 0) {
    std::cerr << "orrery-gpu: no usable NVIDIA GPU (none there, or the driver is missing or older "
                 "than CUDA "
              << CUDART_VERSION / 1000 << "." << CUDART_VERSION % 1000 / 10 << ")\n";
    return no_gpu;
  }
  if (options.command == "info") return run_info(gpus);
  if (options.command == "step") {
    Lab lab{options.device};
    return run_step(options.step, lab);
  }
  return run_measure(options, arguments, gpus);
}

}  // namespace
}  // namespace orrery::calibration

int main(int argc, char** argv) {
  using namespace orrery;
  try {
    return calibration::run({argv + 1, argv + argc});
  } catch (const Error& error) {
    std::cerr << "orrery-gpu: error: " << error.what() << "\n";
    return calibration::bad_input;
  } catch (const calibration::Unsupported& error) {
    std::cerr << "orrery-gpu: error: " << error.what() << "\n";
    return calibration::bad_input;
  } catch (const std::exception& error) {
    std::cerr << "orrery-gpu: error: " << error.what() << "\n";
    return calibration::failed;
  }
}
