#include "sim/reliability/training_run.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "sim/core/number_text.hpp"
#include "sim/reliability/expected_days.hpp"
#include "sim/reliability/run_bill.hpp"
#include "sim/reliability/run_states.hpp"
#include "sim/reliability/run_worth.hpp"

namespace orrery {
namespace {

constexpr double enough = 0.99;  // Of the time.

std::vector<SlowGpu> slow_gpus(const PreparedRun& run, double slower) {
  const double stop = replacement_stop(run).si();
  std::vector<SlowGpu> slow;
  EstimateContext context{run.scenario.system};
  const Seconds whole = step_time(run.scenario, context);
  for (int stage = 0; stage < run.scenario.plan.pp; ++stage) {
    const Seconds step = step_with_slow_gpu(run.scenario, stage, slower);
    // To a millionth steps are alike.
    const double longer = std::max(0.0, step / whole - 1.0 - 1e-6);
    const double infinite = std::numeric_limits<double>::infinity();
    slow.push_back({stage, longer, Seconds{longer > 0.0 ? stop / longer : infinite}});
  }
  return slow;
}

std::vector<StageEviction> evictions_of(const PreparedRun& run) {
  const Slowness& slow = run.setup.slowness;
  std::vector<StageEviction> stages;
  if (!slow.evict) return stages;
  const double longer =
      *slow.evict > 0.0 ? *slow.evict : replacement_stop(run) / (run.without_interruption() * 0.5);
  for (int stage = 0; stage < run.scenario.plan.pp; ++stage) {
    const double from = slow.slower_for(stage, longer);
    stages.push_back({stage, slow.step_ratio(stage, slow.most) - 1.0,
                      from <= slow.most ? from : std::numeric_limits<double>::infinity()});
  }
  return stages;
}

double share_beyond(const std::vector<RunTally>& runs, int units) {
  const std::vector<double> shares = shares_away(runs);
  double beyond = 0.0;
  for (std::size_t i = static_cast<std::size_t>(units) + 1; i < shares.size(); ++i)
    beyond += shares[i];
  return beyond;
}

SpareNeed spare_need(const std::vector<RunTally>& never_waited, std::optional<int> chosen) {
  SpareNeed need;
  need.units = units_away(never_waited, enough);
  need.kept = chosen.value_or(need.units);
  need.short_of = share_beyond(never_waited, need.kept);
  return need;
}

}  // namespace

RunFigures figures_of(const std::vector<RunTally>& runs) {
  std::vector<double> ettr, goodput, interruptions, evictions;
  RunFigures figures;
  figures.by_cause.resize(runs.front().interruptions.size());
  double all = 0.0;
  const auto count = static_cast<double>(runs.size());
  for (const RunTally& run : runs) {
    figures.days_of.push_back(static_cast<double>(run.total()) / micros_per_day);
    ettr.push_back(run.ettr());
    goodput.push_back(run.goodput());
    interruptions.push_back(run.all_interruptions());
    evictions.push_back(run.evictions);
    all += static_cast<double>(run.total());
    for (std::size_t i = 0; i < run_times; ++i) figures.shares[i] += static_cast<double>(run.of[i]);
    for (std::size_t i = 0; i < run.interruptions.size(); ++i)
      figures.by_cause[i] += run.interruptions[i] / count;
  }
  for (double& share : figures.shares) share /= all;
  figures.days = chance_range(figures.days_of);
  figures.ettr = chance_range(std::move(ettr));
  figures.goodput = chance_range(std::move(goodput));
  figures.interruptions = chance_range(std::move(interruptions));
  figures.evictions = chance_range(std::move(evictions));
  return figures;
}

std::vector<RunTally> finished_runs(const PreparedRun& run, const RunQuestion& question) {
  std::vector<RunTally> runs =
      run.record ? run_replicates(run.setup, *run.record, question.seed, question.replicates)
                 : run_replicates(run.setup, run.law, question.seed, question.replicates);
  const auto lost = std::count_if(runs.begin(), runs.end(),
                                  [](const RunTally& tally) { return !tally.finished; });
  if (lost > 0)
    fail_infeasible({"", "--reliability"},
                    grouped(lost) + " of " + grouped(question.replicates) +
                        " runs did not end in a hundred times the time of their steps",
                    question.policy.spares ? "keep more --spares, or let the job be --elastic"
                                           : "save more often, recover faster, or use fewer GPUs");
  return runs;
}

RunTally middle_run(const PreparedRun& run, const RunQuestion& question,
                    const std::vector<RunTally>& runs) {
  std::vector<std::uint64_t> order(runs.size());
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(runs.size() / 2);
  // Of runs that take as long, the first.
  std::nth_element(order.begin(), middle, order.end(), [&](std::uint64_t a, std::uint64_t b) {
    return std::pair{runs[a].total(), a} < std::pair{runs[b].total(), b};
  });
  WalkSetup setup = run.setup;
  setup.keeps_log = true;
  return run.record ? walk(setup, FaultReplay{*run.record, question.seed, *middle})
                    : walk(setup, FailureDraws{run.law, question.seed, *middle});
}

TrainingRun drawn_run(const Scenario& scenario, Seconds step, const RunQuestion& question,
                      const Economics& economics) {
  TrainingRun answer{question, prepare_run(scenario, step, question), {}, {}, {}, {}, {}, {}, {},
                     {}};
  const RunPolicy& policy = question.policy;
  answer.runs = finished_runs(answer.prepared, question);
  answer.figures = figures_of(answer.runs);
  PreparedRun never_waits = answer.prepared;
  never_waits.setup.spares = always_one;
  answer.spares = policy.spares ? spare_need(finished_runs(never_waits, question), policy.spares)
                                : spare_need(answer.runs, {});
  answer.evictions = evictions_of(answer.prepared);
  if (has_expected_shares(question) && !answer.prepared.setup.slowness.any()) {
    const double ettr = expected_shares(answer.prepared).ettr;
    // A job that mostly waits gets on in months with few failures, of which the formula is silent.
    constexpr double mostly = 0.5;
    if (ettr > mostly) answer.expected_ettr = ettr;
  }
  answer.bill = run_bill(answer.prepared, answer.figures, answer.spares.kept, economics);
  return answer;
}

TrainingRun training_run(const Scenario& scenario, Seconds step, const RunQuestion& question,
                         const Economics& economics) {
  TrainingRun answer = drawn_run(scenario, step, question, economics);
  if (question.slower > 0.0) answer.slow = slow_gpus(answer.prepared, question.slower);
  answer.worth = run_worth(answer, economics);
  return answer;
}

}  // namespace orrery
