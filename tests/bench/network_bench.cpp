// How much CPU the network costs: collectives, fabrics, what is not uniform. Prints, and asserts
// nothing by the clock.
//
//     build/release/tests/network_bench     the second table of docs/notes/speed.md
//
// Each case runs in a child of its own, after SimGrid has started.

#include <cstdio>
#include <string>

#include "sim/collectives/isolated_collective.hpp"
#include "sim/core/process.hpp"
#include "sim/plan/rank_classes.hpp"
#include "sim/training/estimate.hpp"
#include "tests/bench/child.hpp"

namespace {

using namespace orrery;

System unlimited(const std::string& name) {
  System system = read_system(name, {});
  system.max_gpus = 0;
  return system;
}

void start_simgrid() {
  run_alone({CollectiveKind::all_reduce, 2, 1, Bytes{1.0}}, read_system("two-gpus", {}));
}

Sample collective(const System& system, const IsolatedCollective& what) {
  start_simgrid();
  Sample sample;
  const double before = cpu_seconds();
  sample.simulated_s = run_alone(what, system).time.si();
  sample.cpu_s = cpu_seconds() - before;
  sample.peak_mb = peak_megabytes();
  return sample;
}

// 2,048 nodes of eight: 64 pods of eight leaves of four nodes, eight spines a pod, 64 cores,
// nothing oversubscribed. Every rank's flows take ways of their own.
System three_levels() {
  System system = unlimited("dgx-a100-superpod");
  FabricShape& shape = system.shape;
  shape.rails = false;
  shape.nodes_per_leaf = 4;
  shape.leaves_per_pod = 8;
  shape.spines = 8;
  shape.cores = 64;
  shape.uplink = shape.core_uplink = 4.0 * system.nic;
  return system;
}

Sample partition(int tp, int pp, int gpus) {
  const System system = three_levels();
  Sample sample;
  const double before = cpu_seconds();
  Plan plan;
  plan.tp = tp;
  plan.pp = pp;
  plan.dp = gpus / (tp * pp);
  const Placement placement{plan, system};
  const Topology topology = Topology::build(system, gpus);
  const RankClasses classes = choose_classes(system, placement, topology, false);
  sample.cpu_s = cpu_seconds() - before;
  sample.peak_mb = peak_megabytes();
  sample.reps = static_cast<int>(classes.reps().size());
  return sample;
}

Sample step(System system, int gpus, Detail detail) {
  start_simgrid();
  PlanRequest request;
  request.tp = 8;
  request.pp = 8;
  request.mbs = 1;
  request.gbs = 96 * (gpus / 64);
  request.recompute = Recompute::full;
  request.software = "megatron-2021";
  const Scenario scenario = make_scenario(read_model("gpt3-175b", {}), system, request, gpus, {});
  Sample sample;
  const double before = cpu_seconds();
  const Result result = estimate(scenario, detail).result;
  sample.cpu_s = cpu_seconds() - before;
  sample.simulated_s = result.step_time.si();
  sample.tasks = result.tasks;
  sample.reps = result.reps;
  sample.peak_mb = peak_megabytes();
  return sample;
}

System with_straggler(System system) {
  system.gpu_overrides.push_back({5, 3, 0.5});
  return system;
}

void print(const char* what, const Sample& sample) {
  note(what, sample.cpu_s,
       {{"roles", static_cast<double>(sample.reps)}, {"tasks", static_cast<double>(sample.tasks)}});
  std::printf("%-58s %10.1f %8.0f %8d %10d\n", what, 1e3 * sample.cpu_s, sample.peak_mb,
              sample.reps, sample.tasks);
}

}  // namespace

int main() {
  use_large_pages();                         // As the program does.
  std::setvbuf(stdout, nullptr, _IONBF, 0);  // Children must not inherit half-printed lines.
  std::printf("%-58s %10s %8s %8s %10s\n", "", "CPU (ms)", "MB", "roles", "tasks");
  const double gib = 1073741824.0;
  print("all-reduce of 1 GiB, 4,096 ranks, leaves 2:1", median_of(5, [&] {
          return collective(unlimited("hgx-h100-leaf-spine-2to1"),
                            {CollectiveKind::all_reduce, 4096, 512, Bytes{gib}});
        }));
  print("all-to-all of 1 GiB, 1,024 ranks", median_of(5, [&] {
          return collective(unlimited("dgx-h100"),
                            {CollectiveKind::all_to_all, 1024, 128, Bytes{gib}});
        }));
  print("partition, 16,384 GPUs, fat tree, tp 8 pp 1",
        median_of(3, [] { return partition(8, 1, 16384); }));
  print("partition, 16,384 GPUs, fat tree, tp 8 pp 8",
        median_of(3, [] { return partition(8, 8, 16384); }));
  const System a100 = read_system("dgx-a100-80gb", {});
  print("GPT-3 175B on 1,024 GPUs", median_of(5, [&] { return step(a100, 1024, {}); }));
  print("GPT-3 175B, one straggler",
        median_of(5, [&] { return step(with_straggler(a100), 1024, {}); }));
  const Sample unfolded = median_of(3, [&] { return step(a100, 1024, {.unfolded = true}); });
  print("GPT-3 175B, unfolded", unfolded);
  std::printf("unfolded: %.0f thousand tasks a second\n", 1e-3 * unfolded.tasks / unfolded.cpu_s);
  return 0;
}
