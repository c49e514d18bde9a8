// CPU time of an estimate inside the process, without start-up, compared with other simulators'
// for the same step. Prints; asserts nothing by the clock.
//
//     build/release/tests/step_bench        the table of docs/notes/speed.md
//
// Each case runs in a child of its own, because SimGrid's clock goes on in a process and the first
// estimate pays for reading the catalog: that is part of what a user waits for.

#include <cstdio>
#include <string>

#include "sim/core/process.hpp"
#include "sim/training/estimate.hpp"
#include "tests/bench/child.hpp"

namespace {

using namespace orrery;

// GPT-3 175B, TP8 PP8, micro-batch 1, 96 micro-batches a pipeline whatever the cluster's size.
Sample estimate_gpt3(int gpus, Detail detail) {
  const double before = cpu_seconds();
  PlanRequest request;
  request.tp = 8;
  request.pp = 8;
  request.mbs = 1;
  request.gbs = 96 * (gpus / 64);
  request.recompute = Recompute::full;
  request.software = "megatron-2021";
  const Scenario scenario = make_scenario(read_model("gpt3-175b", {}),
                                          read_system("dgx-a100-80gb", {}), request, gpus, {});
  const Estimate answer = estimate(scenario, detail);
  Sample sample;
  sample.cpu_s = cpu_seconds() - before;
  sample.simulated_s = answer.result.step_time.si();
  sample.tasks = answer.result.tasks;
  sample.peak_mb = peak_megabytes();
  return sample;
}

// DeepSeek-V3, EP64 PP16, 120 micro-batches a pipeline: dispatch and combine share NICs with
// pipeline transfers, so that each is simulated explicitly.
Sample estimate_deepseek(const std::string& routing) {
  const double before = cpu_seconds();
  PlanRequest request;
  request.pp = 16;
  request.ep = 64;
  request.gbs = 15360;
  request.seq = 4096;
  request.recompute = Recompute::full;
  request.routing = routing;
  const Scenario scenario =
      make_scenario(read_model("deepseek-v3", {}), read_system("dgx-h100", {}), request, 2048, {});
  const Estimate answer = estimate(scenario);
  return {.cpu_s = cpu_seconds() - before,
          .simulated_s = answer.result.step_time.si(),
          .peak_mb = peak_megabytes(),
          .tasks = answer.result.tasks};
}

void note_step(const std::string& name, const Sample& sample) {
  note(name, sample.cpu_s, {{"tasks", static_cast<double>(sample.tasks)}});
}

// Measured on a 2-core machine in November 2026 from the public sources built with optimisation:
// the same model, tp, pp and batch on 1,024 GPUs, where the tool can express them.
struct Peer {
  const char* name;
  double cpu_s;
};
constexpr Peer peers[] = {{"ASTRA-sim 2.0 analytical, a node a stage and micro-batch", 48.0},
                          {"ASTRA-sim 2.0 analytical, a node a layer", 1120.0},
                          {"vTrain, task graph", 5.6},
                          {"SimuMax simulate, 16 micro-batches", 55.0},
                          {"SimuMax perf (formula)", 0.038},
                          {"Calculon (formula), its whole command", 0.32},
                          {"Calculon (formula), one more configuration in process", 0.0015}};

}  // namespace

int main() {
  use_large_pages();                         // As the program does.
  std::setvbuf(stdout, nullptr, _IONBF, 0);  // Children must not inherit half-printed lines.
  const Sample base = median_of(9, [] { return estimate_gpt3(1024, {}); });
  std::printf("GPT-3 175B, TP8 PP8, 96 micro-batches a pipeline, DGX A100\n\n");
  std::printf("%10s %12s %10s %10s %10s %8s\n", "GPUs", "CPU (ms)", "ratio", "step (s)", "tasks",
              "MB");
  for (int gpus : {1024, 16384, 131072}) {
    const Sample sample =
        gpus == 1024 ? base : median_of(9, [gpus] { return estimate_gpt3(gpus, {}); });
    note_step("GPT-3 175B on " + std::to_string(gpus), sample);
    std::printf("%10d %12.1f %10.2f %10.2f %10d %8.0f\n", gpus, 1e3 * sample.cpu_s,
                sample.cpu_s / base.cpu_s, sample.simulated_s, sample.tasks, sample.peak_mb);
  }
  const Sample expanded = median_of(3, [] { return estimate_gpt3(1024, {.expanded = true}); });
  note_step("GPT-3 175B on 1024, expanded", expanded);
  std::printf("%10s %12.1f %10.2f %10.2f %10d %8.0f\n", "expanded", 1e3 * expanded.cpu_s,
              expanded.cpu_s / base.cpu_s, expanded.simulated_s, expanded.tasks, expanded.peak_mb);
  std::printf("\nDeepSeek-V3, EP64 PP16, 2,048 H100\n\n");
  Sample deepseek;
  for (const char* routing : {"uniform", "zipf:1"}) {
    const Sample sample = median_of(5, [routing] { return estimate_deepseek(routing); });
    note_step("DeepSeek-V3 on 2048, " + std::string{routing}, sample);
    if (deepseek.tasks == 0) deepseek = sample;  // Evenly routed.
    std::printf("%10s %12.1f %10.2f %10.2f %10d %8.0f\n", routing, 1e3 * sample.cpu_s,
                sample.cpu_s / base.cpu_s, sample.simulated_s, sample.tasks, sample.peak_mb);
  }
  std::printf("\n--simulator simgrid: flows simulated by SimGrid\n\n");
  const auto by_simgrid = [](const char* what, const Sample& own, const Sample& simgrid) {
    note_step(std::string{what} + " by SimGrid", simgrid);
    std::printf("%10s %12.1f %10.2f %10.2f %10d %8.0f\n", what, 1e3 * simgrid.cpu_s,
                simgrid.cpu_s / own.cpu_s, simgrid.simulated_s, simgrid.tasks, simgrid.peak_mb);
  };
  const SimulatorChoice simgrid{Simulator::simgrid};  // Children inherit it.
  by_simgrid("1024", base, median_of(5, [] { return estimate_gpt3(1024, {}); }));
  by_simgrid("expanded", expanded,
             median_of(3, [] { return estimate_gpt3(1024, {.expanded = true}); }));
  by_simgrid("DeepSeek", deepseek, median_of(3, [] { return estimate_deepseek("uniform"); }));
  std::printf("\n%-58s %10s %12s\n", "the same step elsewhere", "CPU (s)", "x ours");
  for (const Peer& peer : peers)
    std::printf("%-58s %10.3f %12.1f\n", peer.name, peer.cpu_s, peer.cpu_s / base.cpu_s);
  return 0;
}
