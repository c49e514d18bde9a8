// orrery-gpu: options -> work list -> campaign -> record. Messages go to stderr.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include "calibration/gpu/lab.hpp"
#include "calibration/gpu/team.hpp"
#include "calibration/gpu/training_step.hpp"
#include "calibration/host/options.hpp"
#include "calibration/host/work_list.hpp"

namespace orrery::calibration {
namespace {

enum ExitCode {
  ok = 0,
  failed = 1,
  bad_input = 2,
  partial = 5,
  lost = 6,
  no_gpu = 77,
  stopped = 130
};

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
  GpuBench(Lab& lab, Team& team, double budget_s)
      : lab_{lab},
        team_{team},
        warm_up_s_{std::min(5.0, budget_s / 50.0)},
        reference_{lab.cublas, shape()},
        operands_{shape()} {
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
      try {
        require_alive();
      } catch (const DeviceLost& end) {
        one.reason += "; " + std::string{end.what()};
        lost_ = true;
      }
    }
    one.what = what;
    return one;
  }

  // Goes on until the clock no longer remembers what was before: after a pause the first product
  // runs faster than power allows for long, after a heavy case slower. The first time, until the
  // chip is warm.
  double reference_us() override {
    const auto run = [&](cudaStream_t stream) {
      reference_.run(operands_.a.data(), operands_.b.data(), operands_.c.data(), stream);
    };
    const double began_s = now_s(), enough_s = std::exchange(warm_up_s_, 0.0) + 0.4;
    std::vector<double> times_us;
    for (double spent_s = 0.0; spent_s < enough_s || times_us.empty();
         spent_s = now_s() - began_s) {
      const double us = lab_.stopwatch.quick_us(run, 16);
      if (spent_s >= enough_s - 0.2 || times_us.empty()) times_us.push_back(us);
    }
    if (times_us.size() > 1) times_us.erase(times_us.begin());  // The clock had not settled.
    return summarize(times_us).median_us;
  }
  double now_s() override {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  void rest(double seconds) override {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }
  bool interrupted() override { return interruptions != 0; }
  bool lost() override { return lost_; }

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
    if (what.kind == "training_step") return measure_training_step(what, limits, lab_);
    return team_.measure(what, limits);
  }

  Lab& lab_;
  Team& team_;
  double warm_up_s_;
  bool lost_ = false;
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

// Its cases need not be measured again on this machine; on another kind they would.
Record other_record(const std::string& file, const Machine& machine) {
  Record record = parse_record(text_of(file), file);
  if (record.machine.gpu != machine.gpu)
    fail_input({file, "/machine/gpu"},
               "is " + record.machine.gpu + ", but here it is " + machine.gpu,
               "leave out --besides " + file);
  return record;
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
  std::set<std::string> done;
  for (const std::string& file : options.besides)
    for (const Measurement& one : other_record(file, lab.machine).measurements)
      if (one.outcome != Outcome::failed) done.insert(one.what.id());
  record.limits.noise = options.noise;
  record.limits.time_s = options.time_s;
  const std::unique_ptr<Team> team =
      options.ranks > 0
          ? std::make_unique<Team>(options.rank, options.ranks, options.device, options.bootstrap)
          : std::make_unique<Team>();
  if (!first) return team->serve(), ok;

  std::signal(SIGINT, interrupt);
  std::signal(SIGTERM, interrupt);
  GpuBench bench{lab, *team, options.budget_s};
  std::cerr << record.machine.gpu << ", " << cases.size() << " cases -> " << options.output << "\n";
  CampaignPlan plan;
  plan.cases = cases;
  plan.done = done;
  plan.budget_s = options.budget_s;
  const CampaignEnd end = run_campaign(
      record, plan, bench,
      [&](const Record& so_far) { write_whole(options.output, record_json(so_far)); }, show);
  if (!end.lost) team->dismiss();
  std::cerr << options.output << ": " << end.measured << " measured, " << end.skipped
            << " skipped, " << end.failed << " failed";
  if (end.left > 0) std::cerr << ", " << end.left << " left: continue with --resume";
  std::cerr << "\n";
  for (const Measurement& one : record.measurements)
    if (one.outcome == Outcome::failed)
      std::cerr << "  failed: " << one.what.id() << ": " << one.reason << "\n";
  if (end.lost) {
    std::cerr << "orrery-gpu: error: the GPU no longer answers this process; the record is kept: "
                 "continue with --resume\n";
    std::_Exit(lost);  // Nothing that talks to the GPU, as owners do at the end, has an answer.
  }
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
  const auto [gpus, why_none] = usable_gpus();
  if (gpus == 0) {
    std::cerr << "orrery-gpu: no usable NVIDIA GPU: " << why_none << " (built with CUDA "
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
