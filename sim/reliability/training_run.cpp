#include "sim/reliability/training_run.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "sim/core/number_text.hpp"
#include "sim/reliability/run_states.hpp"
#include "sim/training/bill.hpp"
#include "sim/training/step_range.hpp"

namespace orrery {
namespace {

std::vector<SlowGpu> slow_gpus(const PreparedRun& run, double slower) {
  const double stop = replacement_stop(run).si();
  std::vector<SlowGpu> slow;
  EstimateContext context{run.scenario.system};
  const Seconds whole = step_time(run.scenario, context);
  for (int stage = 0; stage < run.scenario.plan.pp; ++stage) {
    const Seconds step = step_with_slow_gpu(run.scenario, stage, slower);
    // Steps count as equal to a millionth.
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

double share_beyond(const std::vector<RunTotals>& runs, int units) {
  const std::vector<double> shares = shares_away(runs);
  double beyond = 0.0;
  for (std::size_t i = static_cast<std::size_t>(units) + 1; i < shares.size(); ++i)
    beyond += shares[i];
  return beyond;
}

SpareNeed spare_need(const std::vector<RunTotals>& runs, const std::vector<RunTotals>& never_waited,
                     std::optional<int> chosen) {
  SpareNeed need;
  need.units = units_away(never_waited, covered_share);
  need.kept = chosen.value_or(need.units);
  need.short_of = share_beyond(runs, need.kept);
  return need;
}

}  // namespace

RunFigures figures_of(const std::vector<RunTotals>& runs) {
  std::vector<double> ettr, goodput, interruptions, evictions;
  RunFigures figures;
  figures.by_cause.resize(runs.front().interruptions.size());
  double all = 0.0;
  const auto count = static_cast<double>(runs.size());
  for (const RunTotals& run : runs) {
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
  figures.ettr.mean = ettr_of(figures.shares);
  figures.goodput = chance_range(std::move(goodput));
  figures.goodput.mean = figures.shares[static_cast<std::size_t>(RunTime::productive)];
  figures.interruptions = chance_range(std::move(interruptions));
  figures.evictions = chance_range(std::move(evictions));
  return figures;
}

std::vector<RunTotals> finished_runs(const PreparedRun& run, const RunQuestion& question) {
  std::vector<RunTotals> runs =
      run.record ? run_replicates(run.setup, *run.record, question.seed, question.replicates)
                 : run_replicates(run.setup, run.distribution, question.seed, question.replicates);
  const auto lost = std::count_if(runs.begin(), runs.end(),
                                  [](const RunTotals& totals) { return !totals.finished; });
  if (lost > 0)
    fail_infeasible({"", "--reliability"},
                    grouped(lost) + " of " + grouped(question.replicates) +
                        " runs did not end in a hundred times the time of their steps",
                    !question.policy.spares   ? "save more often, recover faster, or use fewer GPUs"
                    : question.policy.elastic ? "keep more --spares"
                                              : "keep more --spares, or let the job be --elastic");
  return runs;
}

RunTotals median_run(const PreparedRun& run, const RunQuestion& question,
                     const std::vector<RunTotals>& runs) {
  std::vector<std::uint64_t> order(runs.size());
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(runs.size() / 2);
  // Ties go to the first run.
  std::nth_element(order.begin(), middle, order.end(), [&](std::uint64_t a, std::uint64_t b) {
    return std::pair{runs[a].total(), a} < std::pair{runs[b].total(), b};
  });
  ReplicateSetup setup = run.setup;
  setup.keeps_log = true;
  return run.record ? run_replicate(setup, FaultReplay{*run.record, question.seed, *middle})
                    : run_replicate(setup, FailureDraws{run.distribution, question.seed, *middle});
}

TrainingRun sampled_run(const Scenario& scenario, Seconds step, const RunQuestion& question,
                        const Economics& economics) {
  TrainingRun answer{question, prepare_run(scenario, step, question), {}, {}, {}, {}, {}, {}, {},
                     {}};
  const RunPolicy& policy = question.policy;
  answer.runs = finished_runs(answer.prepared, question);
  answer.figures = figures_of(answer.runs);
  PreparedRun never_waits = answer.prepared;
  never_waits.setup.spares = unlimited_spares;
  answer.spares = policy.spares
                      ? spare_need(answer.runs, finished_runs(never_waits, question), policy.spares)
                      : spare_need(answer.runs, answer.runs, {});
  answer.evictions = evictions_of(answer.prepared);
  if (has_expected_shares(question) && !answer.prepared.setup.slowness.any()) {
    const double ettr = expected_shares(answer.prepared).ettr;
    // A job that mostly waits makes progress in months with few failures, which the formula
    // ignores.
    constexpr double mostly = 0.5;
    if (ettr > mostly) answer.expected_ettr = ettr;
  }
  answer.bill = run_bill(answer.prepared, answer.figures, answer.spares.kept, economics);
  return answer;
}

TrainingRun training_run(const Scenario& scenario, Seconds step, const RunQuestion& question,
                         const Economics& economics) {
  TrainingRun answer = sampled_run(scenario, step, question, economics);
  if (question.slower > 0.0) answer.slow = slow_gpus(answer.prepared, question.slower);
  answer.worth = run_worth(answer, economics);
  return answer;
}

PolicyShares expected_shares(const PreparedRun& run, double factor) {
  const ReplicateSetup& setup = run.setup;
  if (!setup.elastic && setup.spares == unlimited_spares) {
    const double ettr = expected_ettr(run, run.tiers().size() - 1, factor);
    return {ettr, ettr};
  }
  std::vector<double> per_day;
  for (const double rate : run.distribution.per_day) per_day.push_back(factor * rate);
  double work = 0.0, all = 0.0, steps = 0.0;
  ReplicateSetup phase = setup;
  phase.tiers = {setup.tiers.back()};
  for (std::size_t i = 0; i < run.phases.size(); ++i) {
    ReplicatePhase only = setup.phases[i];
    only.every = {only.every.back()};
    only.slowed = {only.slowed.back()};
    phase.phases = {only};
    const double whole = (run.phases[i].step * run.phases[i].steps).si() * 1e6;
    const PolicyShares shares = policy_shares(phase, per_day, run.distribution.repair_us, whole);
    work += whole;
    all += whole / shares.goodput;
    steps += whole / shares.goodput * shares.ettr;
  }
  return {steps / all, work / all};
}

bool has_expected_shares(const RunQuestion& question) {
  const RunPolicy& policy = question.policy;
  if (policy.checkpoints.size() != 1) return false;
  if (!policy.spares && !policy.elastic) return true;
  return !question.faults && question.reliability.batches.size() <= 1;
}

namespace {

// Power of a GPU that works, that waits, and that does one or the other.
struct GpuPower {
  Range working, waiting, either;
};

GpuPower gpu_power(const Economics& economics) {
  const Range working = economics.server_watts_per_gpu;
  if (!working.known()) return {};
  const Range reported = economics.waiting_watts_per_gpu;
  const Range waiting = reported.known() ? reported : Range{0.0, working.high};
  return {
      working, waiting, {std::min(waiting.low, working.low), std::max(waiting.high, working.high)}};
}

}  // namespace

RunBill run_bill(const PreparedRun& run, const RunFigures& figures, int kept,
                 const Economics& economics) {
  const int gpus = run.scenario.plan.gpus();
  const double hours = 24.0 * figures.days.mean;
  const double spare_hours = hours * (kept + run.rented_idle) * run.gpus_of_unit;
  const auto share = [&](RunTime time) { return figures.shares[static_cast<std::size_t>(time)]; };
  const double hangs = share(RunTime::detecting);
  const double waits =
      share(RunTime::saving) + share(RunTime::waiting) + share(RunTime::restarting);
  const double redone = share(RunTime::redone);

  RunBill bill;
  bill.gpu_hours = hours * gpus + spare_hours;
  bill.has_own_rent = economics.has_own_rent;
  bill.rent_usd = economics.rent_usd_per_gpu_hour * bill.gpu_hours;
  const double jobs = hours * gpus / bill.gpu_hours;
  bill.spares = 1.0 - jobs;
  bill.redone = jobs * redone;
  bill.stopped = jobs * (hangs + waits);
  bill.steps = jobs * (1.0 - redone - hangs - waits);

  const GpuPower power = gpu_power(economics);
  const auto kwh = [&](Range watts, double times) { return watts * economics.pue * (times / 1e3); };
  const auto switches =
      static_cast<double>(fabric_parts(run.scenario.system, gpus, economics).switches);
  bill.stopped_kwh =
      kwh(power.either, hours * gpus * hangs) + kwh(power.waiting, hours * gpus * waits);
  bill.spares_kwh = kwh(power.waiting, spare_hours);
  bill.energy_kwh = kwh(power.working, hours * gpus * (1.0 - hangs - waits)) + bill.stopped_kwh +
                    bill.spares_kwh + kwh(economics.switch_watts, hours * switches);
  bill.energy_usd = bill.energy_kwh * economics.usd_per_kwh;
  return bill;
}

namespace {

constexpr Micros quick_detection = 10'000'000;

class Worth {
 public:
  Worth(const TrainingRun& answer, const Economics& economics)
      : answer_{answer}, economics_{economics} {}

  // A change of the setup alone.
  void try_setup(const std::string& what, const std::function<void(PreparedRun&)>& change) {
    PreparedRun run = answer_.prepared;
    change(run);
    add(what, run);
  }

  // A change of the policy. An infeasible one is no improvement.
  void try_policy(const std::string& what, const std::function<void(RunPolicy&)>& change) {
    RunQuestion question = answer_.question;
    change(question.policy);
    const Slowness& slow = answer_.prepared.setup.slowness;
    if (slow.any()) question.slow_states = SlowStates{slow.knots, slow.ratios};
    std::optional<PreparedRun> run;
    try {
      run = prepare_run(answer_.prepared.scenario, answer_.prepared.step, question);
    } catch (const Error&) {
      return;
    }
    add(what, *run);
  }

  std::vector<Improvement> sorted() {
    std::stable_sort(list_.begin(), list_.end(), [](const Improvement& a, const Improvement& b) {
      return a.days.mean > b.days.mean;
    });
    return std::move(list_);
  }

 private:
  void add(const std::string& what, const PreparedRun& run) {
    const std::vector<RunTotals> runs = finished_runs(run, answer_.question);
    const RunFigures better = figures_of(runs);
    const RunFigures& before = answer_.figures;
    std::vector<double> saved;
    for (std::size_t i = 0; i < before.days_of.size(); ++i)
      saved.push_back(before.days_of[i] - better.days_of[i]);
    const bool unlimited = run.setup.spares == unlimited_spares;
    const int kept = unlimited ? units_away(runs, covered_share) : run.setup.spares;
    const double gpu_hours =
        answer_.bill.gpu_hours - run_bill(run, better, kept, economics_).gpu_hours;
    list_.push_back({what, chance_range(std::move(saved)), better.ettr.mean - before.ettr.mean,
                     gpu_hours, economics_.rent_usd_per_gpu_hour * std::abs(gpu_hours)});
  }

  const TrainingRun& answer_;
  const Economics& economics_;
  std::vector<Improvement> list_;
};

bool has_tier(const PreparedRun& run, CheckpointTier wanted) {
  for (const RunTier& tier : run.tiers())
    if (tier.tier == wanted) return true;
  return false;
}

}  // namespace

std::vector<Improvement> run_worth(const TrainingRun& answer, const Economics& economics) {
  const PreparedRun& run = answer.prepared;
  const RunPolicy& policy = answer.question.policy;
  Worth worth{answer, economics};
  worth.try_setup("failures found in 10 s", [](PreparedRun& better) {
    for (ReplicateCause& cause : better.setup.causes) {
      cause.detect_low = std::min(cause.detect_low, quick_detection);
      cause.detect_high = std::min(cause.detect_high, quick_detection);
    }
  });
  worth.try_setup("restarts in half the time",
                  [](PreparedRun& better) { better.setup.restart /= 2; });
  if (!run.record)
    worth.try_setup("half as many failures", [](PreparedRun& better) {
      for (double& rate : better.distribution.per_day) rate /= 2.0;
    });
  if (!has_tier(run, CheckpointTier::peer))
    worth.try_policy("copies in other nodes' memory", [](RunPolicy& better) {
      CheckpointRule peer;
      peer.tier = CheckpointTier::peer;
      const auto store = std::prev(better.checkpoints.end());
      if (store->best()) store->every = Seconds{3600.0};
      better.checkpoints.insert(store, peer);
    });
  if (!policy.elastic)
    worth.try_policy("elastic: without the replica",
                     [](RunPolicy& better) { better.elastic = true; });
  if (run.setup.slowness.per_day > 0.0 && !policy.evict)
    worth.try_policy("slow GPUs replaced where it pays",
                     [](RunPolicy& better) { better.evict = EvictionRule{}; });
  const CheckpointRule& store = policy.checkpoints.back();
  if (!store.best() && run.tiers().back().best > Seconds{})
    worth.try_policy("checkpoints every " + span_text(run.tiers().back().best),
                     [](RunPolicy& better) { better.checkpoints.back() = {}; });
  if (run.setup.spares < answer.spares.units)
    worth.try_setup(grouped(answer.spares.units) +
                        (answer.spares.units == 1 ? " spare instead of " : " spares instead of ") +
                        grouped(run.setup.spares),
                    [&](PreparedRun& better) { better.setup.spares = answer.spares.units; });
  return worth.sorted();
}

}  // namespace orrery
