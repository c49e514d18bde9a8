#include <algorithm>
#include <cmath>

#include "sim/analysis/run/run_law.hpp"
#include "sim/analysis/run/run_states.hpp"
#include "sim/analysis/run/training_run.hpp"
#include "sim/base/text/number_text.hpp"
#include "sim/work/walk/expected_run.hpp"

namespace orrery {
namespace {

// With more units away at once even an elastic job waits.
constexpr int most_units_away = 8;
// A run that takes longer than so many times its steps is no run.
constexpr double hopeless = 100.0;
// In seconds, three centuries: a hundred times as many microseconds have 60 bits.
constexpr double longest_run = 1e10;
constexpr Seconds longest_write{1e6};

std::int64_t rounded_up(Seconds time, Seconds step) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(time / step)));
}

const std::string& name(CheckpointTier tier) {
  return checkpoint_tier_names()[static_cast<std::size_t>(tier)];
}

void refuse_contradictions(const Scenario& scenario, const RunPolicy& policy) {
  if (policy.elastic && scenario.plan.dp == 1)
    fail_input({"", "--elastic"}, "the job has one replica, without which nothing is left",
               "leave it out, or choose a plan with dp 2 or more");
  for (const CheckpointRule& rule : policy.checkpoints)
    if (rule.tier == CheckpointTier::peer && scenario.plan.gpus() <= gpus_of_unit(scenario))
      fail_input({"", "--checkpoint"}, "'peer' keeps copies in other nodes, and the job has one",
                 "leave it out");
}

void replay(const FaultTrace& faults, PreparedRun& run) {
  run.setup.units = run.scenario.plan.gpus() / run.gpus_of_unit;
  run.setup.fleet = faults.servers;
  if (run.setup.units > faults.servers)
    fail_input({"", "--faults"},
               "the job needs " + grouped(run.setup.units) + " nodes, and " + faults.file +
                   " records a fleet of " + grouped(faults.servers),
               "use fewer GPUs; --reliability FILE draws failures of a larger fleet");
  run.record = record_of(faults);
}

// Failures a second after which a tier is the first that still has a checkpoint.
double rate_of(const PreparedRun& run, std::size_t tier) {
  double per_day = 0.0;
  for (std::size_t i = 0; i < run.setup.causes.size(); ++i)
    if (run.setup.causes[i].first_tier == tier && !run.setup.causes[i].planned)
      per_day += run.law.per_day[i];
  return per_day / 86400.0;
}

void price_tier(const PreparedRun& run, const CheckpointRule& rule, const Reliability& profile,
                BytesPerSecond store, RunTier& tier) {
  tier.tier = rule.tier;
  tier.times = checkpoint_times(run.scenario, run.size, profile, rule.tier, store);
  if (tier.times.write == Seconds{}) return;
  if (tier.times.write > longest_write)
    fail_input({"", "--storage"}, "a checkpoint would take " + span_text(tier.times.write),
               "write a rate like \"100 GB/s\"");
  // A step that a write takes only a part of is slowed for that part.
  const Seconds slow = step_beside_write(run.scenario, tier.times.nic_share);
  const double steps = tier.times.write / slow;
  tier.slowed = std::max(Seconds{}, (slow - run.step) * (steps / std::ceil(steps)));
}

void choose_interval(const PreparedRun& run, const CheckpointRule& rule, double rate,
                     RunTier& tier) {
  const Seconds write = tier.times.write;
  if (rate > 0.0) {
    const Seconds cost = tier.times.stall + tier.slowed * std::ceil(write / run.step);
    tier.best = std::max(best_work(rate, cost), write);
    tier.young = young_work(rate, cost);
  }
  if (rule.best() && rate == 0.0)
    fail_input({"", "--checkpoint"},
               "no failure of this profile would read '" + name(rule.tier) +
                   "', so that no interval is the best",
               "say one: " + name(rule.tier) + ":1h");
  tier.steps = rule.steps;
  if (rule.every > Seconds{})
    tier.steps = std::max<std::int64_t>(1, std::llround(rule.every / run.step));
  if (rule.best())
    tier.steps = std::max<std::int64_t>(
        {1, rounded_up(write, run.step), static_cast<std::int64_t>(tier.best / run.step)});
  const Seconds between = run.step * static_cast<double>(tier.steps);
  if (between + tier.times.stall < write)
    fail_input({"", "--checkpoint"},
               "a write to '" + name(rule.tier) + "' takes " + span_text(write) +
                   ", longer than the " + span_text(between) + " from one to the next",
               "write " + name(rule.tier) + ":" + std::to_string(rounded_up(write, run.step)) +
                   "steps or more, or name a faster --storage");
}

std::vector<StepState> states_of(const PreparedRun& run, bool elastic) {
  std::vector<StepState> states;
  const int units = elastic ? most_units_away : 0;
  for (const AwayState& state : away_states(run.scenario, run.step, units))
    states.push_back({whole_micros(state.step), state.samples});
  return states;
}

// Whole steps, as the bill counts them.
std::int64_t samples_of(const Scenario& scenario, Seconds step, double tokens) {
  const double tokens_a_step =
      static_cast<double>(scenario.plan.gbs) * static_cast<double>(scenario.plan.seq);
  const double steps = std::ceil(tokens / tokens_a_step);
  if (steps * step.si() > longest_run)
    fail_infeasible({"", "--tokens"}, "the steps alone take " + span_text(step * steps),
                    "use more GPUs, or ask for fewer tokens");
  return static_cast<std::int64_t>(steps) * scenario.plan.gbs;
}

}  // namespace

double PreparedRun::steps() const {
  double samples = 0.0;
  for (const WalkPhase& phase : setup.phases) samples += static_cast<double>(phase.samples);
  return samples / static_cast<double>(scenario.plan.gbs);
}

PreparedRun prepare_run(const Scenario& scenario, Seconds step, const RunQuestion& question) {
  const RunPolicy& policy = question.policy;
  const Reliability& profile = question.reliability;
  const int gpus = scenario.plan.gpus();
  refuse_contradictions(scenario, policy);
  PreparedRun run{scenario,
                  step,
                  checkpoint_size(scenario),
                  {},
                  gpus_of_unit(scenario),
                  {},
                  law_of(profile, gpus),
                  {}};
  WalkSetup& setup = run.setup;
  setup.causes = causes_of(profile, policy.checkpoints);
  setup.restart = whole_micros(profile.restart.at(gpus));
  setup.regroup = whole_micros(profile.regroup.at(gpus));
  setup.elastic = policy.elastic;
  setup.replicas_hold_all = scenario.plan.zero == 0 && scenario.plan.dp > 1;
  setup.replicas = scenario.plan.dp;
  setup.replicas_of_unit = replicas_of_unit(scenario);
  setup.spares = policy.spares.value_or(always_one);
  if (question.faults) replay(*question.faults, run);

  const BytesPerSecond store = policy.store.value_or(profile.store_per_gpu * gpus);
  for (std::size_t i = 0; i < policy.checkpoints.size(); ++i) {
    RunTier tier;
    price_tier(run, policy.checkpoints[i], profile, store, tier);
    choose_interval(run, policy.checkpoints[i], rate_of(run, i), tier);
    run.tiers.push_back(tier);
  }
  WalkPhase phase;
  phase.samples = samples_of(scenario, step, question.tokens);
  phase.by_away = states_of(run, policy.elastic);
  for (const RunTier& tier : run.tiers) {
    phase.every.push_back(tier.steps);
    setup.tiers.push_back({whole_micros(tier.times.stall), whole_micros(tier.times.write),
                           whole_micros(tier.times.load), whole_micros(tier.slowed)});
  }
  setup.phases.push_back(std::move(phase));
  setup.give_up = whole_micros(step * (run.steps() * hopeless)) + whole_micros(Seconds{86400.0});
  double best = 0.0;
  for (const RunTier& tier : run.tiers) best = std::max(best, expected_ettr(run, tier));
  if (best < 1.0 / hopeless)
    fail_infeasible({"", "--reliability"},
                    "with a failure every " + span_text(Seconds{86400.0 / profile.per_day(gpus)}) +
                        " hardly anything lasts until the next checkpoint",
                    "save more often, recover faster, or use fewer GPUs");
  return run;
}

double expected_ettr(const PreparedRun& run, const RunTier& tier, double factor) {
  const WalkSetup& setup = run.setup;
  double unplanned = 0.0, planned = 0.0;
  for (std::size_t i = 0; i < setup.causes.size(); ++i)
    (setup.causes[i].planned ? planned : unplanned) += factor * run.law.per_day[i] / 86400.0;
  const auto seconds = [](Micros time) { return Seconds{static_cast<double>(time) / 1e6}; };
  Interruptions interruptions{unplanned, 1.0};
  double recovered = 0.0;
  for (std::size_t i = 0; i < setup.causes.size(); ++i) {
    const WalkCause& cause = setup.causes[i];
    if (!cause.planned)
      recovered += factor * run.law.per_day[i] / 86400.0 *
                   untouched(unplanned, seconds(cause.detect_low), seconds(cause.detect_high));
  }
  const Seconds start = seconds(setup.restart) + tier.times.load;
  if (unplanned > 0.0)
    interruptions.recovered = recovered / unplanned * untouched(unplanned, start);
  const Seconds work = run.step * static_cast<double>(tier.steps);
  const Seconds slowed = tier.slowed * std::ceil(tier.times.write / run.step);
  const double ettr =
      1.0 / time_over_work(interruptions, {work, tier.times.stall + slowed, tier.times.write});
  // Planned stops lose no steps: they take their share of the time.
  const Seconds stop = tier.times.stall + tier.times.write + start;
  return ettr / (1.0 + planned * stop.si());
}

}  // namespace orrery
