// CPU time of a whole run: the step times of its states, and 1,000 replicates of weeks.
//
//     build/release/tests/run_bench [SECONDS OF STATES] [SECONDS OF RUNS]
//
// Fails if a plan's states or replicates take more.

#include <cstdio>
#include <cstdlib>

#include "sim/reliability/training_run.hpp"
#include "sim/training/estimate.hpp"
#include "tests/bench/child.hpp"

namespace {

using namespace orrery;

struct Case {
  const char* model;
  const char* system;
  const char* reliability;
  int gpus, tp, pp;
  std::int64_t gbs, seq;
  double days;
  const char* software = "";
  const char* ramp = "";
  bool elastic = false;
};

RunQuestion question_of(const Case& one) {
  RunQuestion question;
  question.reliability = read_reliability(one.reliability, {});
  question.replicates = 1000;
  question.policy.elastic = one.elastic;
  if (*one.ramp) question.policy.ramp = parse_batch_ramp(one.ramp, {});
  return question;
}

bool is_quick(const Case& one, double most_of_states, double most_of_runs) {
  PlanRequest request;
  request.tp = one.tp;
  request.pp = one.pp;
  request.gbs = one.gbs;
  request.seq = one.seq;
  request.software = one.software;
  if (*one.software) {
    request.mbs = 2;
    request.zero = 1;
    request.recompute = Recompute::full;
  }
  const Scenario scenario =
      make_scenario(read_model(one.model, {}), read_system(one.system, {}), request, one.gpus, {});
  const double begin = cpu_seconds();
  const Seconds step = estimate(scenario).result.step_time;
  RunQuestion question = question_of(one);
  question.tokens = one.days * 86400.0 / step.si() * static_cast<double>(one.gbs * one.seq);
  const PreparedRun run = prepare_run(scenario, step, question);
  const double prepared = cpu_seconds();
  const std::vector<RunTotals> runs = finished_runs(run, question);
  const double simulated = cpu_seconds();
  double interruptions = 0.0;
  for (const RunTotals& totals : runs)
    interruptions += totals.all_interruptions() / static_cast<double>(runs.size());
  const std::string name = std::string{one.model} + " on " + std::to_string(one.gpus) +
                           (one.elastic ? ", elastic"
                            : *one.ramp ? ", with a ramp"
                                        : "");
  note(name + ", states", prepared - begin);
  note(name + ", walks", simulated - prepared, {{"walks", static_cast<double>(runs.size())}});
  std::printf(
      "%-15s %6d GPUs  %5.1f days  %5.0f interruptions  states %6.3f s  walks %6.3f s%s%s\n",
      one.model, one.gpus, one.days, interruptions, prepared - begin, simulated - prepared,
      one.elastic ? "  elastic" : "", *one.ramp ? "  with a ramp" : "");
  return prepared - begin <= most_of_states && simulated - prepared <= most_of_runs;
}

}  // namespace

int main(int argc, char** argv) {
  const double of_states = argc > 1 ? std::atof(argv[1]) : 5.0;
  const double of_walks = argc > 2 ? std::atof(argv[2]) : 2.0;
  const Case cases[] = {
      {"llama3.1-405b", "grand-teton-h100-80gb", "meta-llama3", 16384, 8, 16, 2048, 8192, 54.0},
      {"llama3.1-405b", "grand-teton-h100-80gb", "meta-llama3", 16384, 8, 16, 2048, 8192, 54.0, "",
       "", true},
      {"llama3-70b", "dgx-h100", "stepfun", 2048, 8, 4, 1024, 8192, 84.0},
      {"llama3-70b", "hgx-h100-leaf-spine-2to1", "default", 128, 8, 4, 128, 8192, 54.0},
      {"bloom-176b", "jean-zay-a100-80gb", "bloom", 384, 4, 12, 2048, 2048, 105.0,
       "megatron-deepspeed-bf16", "192 16 9765625"}};
  bool quick = true;
  for (const Case& one : cases) quick = is_quick(one, of_states, of_walks) && quick;
  return quick ? 0 : 1;
}
