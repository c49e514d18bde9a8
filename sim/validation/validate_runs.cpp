#include <algorithm>
#include <cmath>

#include "sim/core/progress.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/reliability/expected_run.hpp"
#include "sim/reliability/fault_replay.hpp"
#include "sim/reliability/reliability.hpp"
#include "sim/reliability/run_states.hpp"
#include "sim/reliability/training_run.hpp"
#include "sim/training/estimate.hpp"
#include "sim/validation/run_case.hpp"
#include "sim/validation/validate_kinds.hpp"

namespace orrery {
namespace {

constexpr int replicates = 1000;
constexpr double day = 86400.0;

/// A case as a run, however it was published.
struct CaseRun {
  RunQuestion question;
  PreparedRun run;
};

Reliability at_one_rate(Reliability profile) {
  profile.month_deviation = 0.0;
  profile.batches.clear();
  profile.spread = 1.0;
  for (FailureCause& cause : profile.causes) cause.events = 0.0;
  return profile;
}

RunQuestion question_of(const RunCase& one) {
  RunQuestion question;
  question.tokens = one.tokens;
  question.reliability = read_reliability(one.reliability, one.place / "reliability");
  question.replicates = replicates;
  if (one.constant_rate) question.reliability = at_one_rate(question.reliability);
  question.policy.store = one.storage;
  if (one.interval) question.policy.checkpoints.front().every = *one.interval;
  return question;
}

CaseRun planned_run(const RunCase& one) {
  RunQuestion question = question_of(one);
  PlanRequest request;
  read_plan(request, *one.plan);
  const Scenario scenario =
      make_scenario(read_model(one.model, one.place / "model"),
                    read_system(one.system, one.place / "system"), request, one.gpus, one.place);
  const Seconds step = estimate(scenario).result.step_time;
  PreparedRun run = prepare_run(scenario, step, question);
  return {std::move(question), std::move(run)};
}

// A job without a plan has steps of a second.
CaseRun plain_run(const RunCase& one) {
  RunQuestion question = question_of(one);
  const Reliability& profile = question.reliability;
  PreparedRun run;
  run.distribution = distribution_of(profile, one.gpus);
  run.setup.causes = causes_of(profile, question.policy.checkpoints);
  run.setup.restart = whole_micros(profile.restart.at(one.gpus));
  run.setup.spares = unlimited_spares;
  run.setup.refill = refill_of(profile);
  if (one.recovery) {
    run.setup.restart = whole_micros(*one.recovery);
    for (ReplicateCause& cause : run.setup.causes) cause.detect_low = cause.detect_high = 0;
  }
  // A fleet whose units are counted has been in service for longer than a repair lasts.
  if (std::any_of(one.measured.begin(), one.measured.end(),
                  [](const auto& value) { return value.first.starts_with("away_"); }))
    run.distribution.before = static_cast<Micros>(run.distribution.repair_us.back());
  run.setup.tiers = {{whole_micros(one.stall), whole_micros(one.write), 0}};
  const double rate = profile.per_day(one.gpus) / day;
  const Seconds interval = one.interval.value_or(std::max(best_work(rate, one.stall), one.write));
  run.setup.phases = {{std::llround(one.days * day),
                       {{1'000'000, 1}},
                       {std::max<std::int64_t>(1, std::llround(interval.si()))},
                       {0}}};
  return {std::move(question), std::move(run)};
}

double away_mean(const std::vector<RunTotals>& runs) {
  const std::vector<double> shares = shares_away(runs);
  double mean = 0.0;
  for (std::size_t away = 0; away < shares.size(); ++away)
    mean += static_cast<double>(away) * shares[away];
  return mean;
}

// The quantile of one fleet, as published; not of all fleets together.
double mean_quantile(const std::vector<RunTotals>& runs, double share) {
  double sum = 0.0;
  for (const RunTotals& run : runs) sum += units_away({&run, 1}, share);
  return sum / static_cast<double>(runs.size());
}

// Samples a second while the batch grew, over those of the whole batch.
double throughput_ratio(const RunCase& one, const PreparedRun& run) {
  const Scenario& whole = run.scenario;
  PlanRequest request = plan_again(whole.plan);
  read_plan(request, *one.batch);
  const Scenario small = make_scenario(whole, request, one.gpus, one.place);
  EstimateContext context{small.system};
  return static_cast<double>(small.plan.gbs) / static_cast<double>(whole.plan.gbs) *
         (run.step / step_time(small, context));
}

// A figure of the replicates, which serve several quantities of a case.
double sampled_quantity(const std::string& quantity, const std::vector<RunTotals>& runs,
                        const JsonValue& at) {
  if (quantity == "ettr") return figures_of(runs).ettr.mean;
  if (quantity == "away_mean") return away_mean(runs);
  for (const auto& [name, share] :
       {std::pair{"away_p50", 0.5}, {"away_p90", 0.9}, {"away_p99", 0.99}})
    if (quantity == name) return mean_quantile(runs, share);
  at.at(quantity).fail("nothing predicts '" + quantity + "'",
                       "docs/notes/validation.md lists what is predicted");
}

double predicted(const RunCase& one, const std::string& quantity, CaseRun& case_run,
                 std::vector<RunTotals>& runs, const JsonValue& measured) {
  const Reliability& profile = case_run.question.reliability;
  if (quantity == "mttf_h") return 24.0 / profile.per_day(one.gpus);
  if (quantity == "interruptions") return profile.per_day(one.gpus) * one.days;
  if (quantity == "restart_s") return profile.restart.at(one.gpus).si();
  if (one.plan && quantity == "checkpoint_bytes") return case_run.run.size.total.si();
  if (one.plan && quantity == "write_s") return case_run.run.tiers().back().times.write.si();
  if (one.plan && quantity == "load_s") return case_run.run.tiers().back().times.load.si();
  if (one.plan && one.slower > 0.0 && quantity == "slow_step_ratio") {
    double ratio = 1.0;
    for (int stage = 0; stage < case_run.run.scenario.plan.pp; ++stage)
      ratio = std::max(
          ratio, step_with_slow_gpu(case_run.run.scenario, stage, one.slower) / case_run.run.step);
    return ratio;
  }
  if (one.batch && quantity == "throughput_ratio") return throughput_ratio(one, case_run.run);
  if (runs.empty()) runs = finished_runs(case_run.run, case_run.question);
  return sampled_quantity(quantity, runs, measured);
}

void compare(const JsonValue& entry, ValidationReport& report) {
  const RunCase one = read_run_case(entry);
  try {
    CaseRun case_run = one.plan ? planned_run(one) : plain_run(one);
    std::vector<RunTotals> runs;
    for (const auto& [quantity, value] : one.measured) {
      Comparison comparison{one.id, quantity, 0.0, 0.0, {}};
      comparison.predicted = predicted(one, quantity, case_run, runs, entry.at("measured"));
      comparison.measured = value.nearest(comparison.predicted);
      if (!value.is_value()) comparison.bounds = {value.low, value.high};
      report.comparisons.push_back(comparison);
    }
  } catch (const Error& error) {
    report.refusals.push_back({one.id, error.what()});
  }
}

}  // namespace

void compare_runs(const JsonValue& json, ValidationReport& report) {
  const std::vector<JsonValue> entries = json.elements();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    ProgressListener::report({Progress::Of::cases, i, entries.size()});
    compare(entries[i], report);
  }
}

}  // namespace orrery
