#include <algorithm>
#include <cmath>

#include "sim/core/number_text.hpp"
#include "sim/plan/plan_keys.hpp"
#include "sim/reliability/expected_run.hpp"
#include "sim/reliability/failure_time.hpp"
#include "sim/reliability/fault_replay.hpp"
#include "sim/reliability/run_states.hpp"
#include "sim/reliability/training_run.hpp"
#include "sim/training/checkpoint_write.hpp"

namespace orrery {
namespace {

// A run that would take longer than so many times its steps is infeasible.
constexpr double hopeless = 100.0;
// Three centuries in seconds: a hundred times as many microseconds have 60 bits.
constexpr double longest_run = 1e10;
constexpr Seconds longest_write{1e6};

std::int64_t rounded_up(Seconds time, Seconds step) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(time / step)));
}

void refuse_contradictions(const Scenario& scenario, const RunPolicy& policy) {
  if (policy.elastic && scenario.plan.dp == 1)
    fail_input({"", "--elastic"}, "the job has one replica, without which nothing is left",
               "leave it out, or choose a plan with dp 2 or more");
  if (policy.elastic && groups_of_job(scenario) == 1)
    fail_input({"", "--elastic"},
               "the job's " + grouped(scenario.plan.dp) +
                   " replicas share a node, experts or shards, and leave together",
               "leave it out, or choose a plan with more replicas, a smaller ep, or dp_replicate");
  for (const CheckpointRule& rule : policy.checkpoints)
    if (rule.tier == CheckpointTier::peer && scenario.plan.gpus() <= gpus_of_unit(scenario))
      fail_input({"", "--checkpoint"}, "'peer' keeps copies in other nodes, and the job has one",
                 "leave it out");
}

void replay(const FaultTrace& faults, PreparedRun& run) {
  run.setup.fleet = faults.servers;
  run.setup.racks = {};  // A record does not say which servers share one, or are idle.
  run.setup.refill = ReplicateSetup{}.refill;  // It says when they were back.
  run.idle_units = run.rented_idle = 0;
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
      per_day += run.distribution.per_day[i];
  return per_day / 86400.0 / run.distribution.mean_batch();
}

void price_tier(const Scenario& scenario, EstimateContext& context, BytesPerSecond store,
                const Reliability& profile, const CheckpointSize& size, RunTier& tier) {
  tier.times = checkpoint_times(scenario, size, profile, tier.tier, store);
  if (tier.times.write == Seconds{}) return;
  if (tier.times.write > longest_write)
    fail_input({"", "--storage"}, "a checkpoint would take " + span_text(tier.times.write),
               "write a rate like \"100 GB/s\"");
  const StepsDuringWrite overlap =
      steps_during(scenario, context, checkpoint_write(scenario, size, tier.tier, store));
  tier.times.write = overlap.write;
  // The last of them may be slowed for a part of it.
  tier.slowed = overlap.longer / static_cast<double>(overlap.steps);
}

void choose_interval(const CheckpointRule& rule, double rate, Seconds step, RunTier& tier) {
  const Seconds write = tier.times.write;
  if (rate > 0.0) {
    const Seconds cost = tier.times.stall + tier.slowed * std::ceil(write / step);
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
    tier.steps = std::max<std::int64_t>(1, std::llround(rule.every / step));
  if (rule.best())
    tier.steps = std::max<std::int64_t>(
        {1, rounded_up(write, step), static_cast<std::int64_t>(tier.best / step)});
  const Seconds between = step * static_cast<double>(tier.steps);
  if (between + tier.times.stall < write)
    fail_input({"", "--checkpoint"},
               "a write to '" + name(rule.tier) + "' takes " + span_text(write) +
                   ", longer than the " + span_text(between) + " from one to the next",
               "write " + name(rule.tier) + ":" + std::to_string(rounded_up(write, step)) +
                   "steps or more, or name a faster --storage");
}

// The plan at another batch.
Scenario at_batch(const Scenario& scenario, std::int64_t gbs) {
  PlanRequest request = plan_again(scenario.plan);
  request.gbs = gbs;
  try {
    return make_scenario(scenario, request, scenario.plan.gpus(), {});
  } catch (const Error& error) {
    fail_infeasible(
        {"", "--ramp"},
        "with " + grouped(gbs) + " sequences in a step the plan cannot run: " + error.what(),
        "let the batch begin and grow in multiples of " +
            grouped(scenario.plan.mbs * scenario.plan.dp));
  }
}

std::vector<StepState> states_of(const Scenario& scenario, Seconds step, bool elastic) {
  if (!elastic) return {{whole_micros(step), scenario.plan.gbs}};
  std::vector<StepState> states;
  for (const AwayState& state : away_states(scenario, step))
    states.push_back({whole_micros(state.step), state.samples});
  return states;
}

// Adds one stretch of the run, at a batch of its own.
void add_phase(const Scenario& scenario, EstimateContext& context, Seconds step, double steps,
               const RunQuestion& question, PreparedRun& run) {
  const RunPolicy& policy = question.policy;
  const Reliability& profile = question.reliability;
  const BytesPerSecond store = policy.store.value_or(profile.store_per_gpu * scenario.plan.gpus());
  RunPhase phase{scenario.plan.gbs, steps, step, {}};
  ReplicatePhase replicate;
  replicate.samples = static_cast<std::int64_t>(steps) * scenario.plan.gbs;
  replicate.by_away = states_of(scenario, step, policy.elastic);
  for (std::size_t i = 0; i < policy.checkpoints.size(); ++i) {
    RunTier tier;
    tier.tier = policy.checkpoints[i].tier;
    price_tier(scenario, context, store, profile, run.size, tier);
    choose_interval(policy.checkpoints[i], rate_of(run, i), step, tier);
    replicate.every.push_back(tier.steps);
    replicate.slowed.push_back(whole_micros(tier.slowed));
    phase.tiers.push_back(tier);
  }
  run.phases.push_back(std::move(phase));
  run.setup.phases.push_back(std::move(replicate));
}

// Whole steps, as the bill counts them.
void add_phases(Seconds step, const RunQuestion& question, PreparedRun& run) {
  const Plan& plan = run.scenario.plan;
  const double a_step = static_cast<double>(plan.gbs) * static_cast<double>(plan.seq);
  if (question.tokens < a_step)
    fail_input({"", "--tokens"},
               nine_digits(question.tokens) + " tokens are less than one step of " +
                   grouped(plan.gbs * plan.seq),
               "write 15T for 15 trillion");
  const std::vector<BatchPhase> phases =
      batch_phases(question.policy.ramp, plan.gbs, plan.seq, question.tokens, {"", "--ramp"});
  if (phases.back().steps * step.si() > longest_run)
    fail_infeasible({"", "--tokens"},
                    "the steps alone take " + span_text(step * phases.back().steps),
                    "use more GPUs, or ask for fewer tokens");
  EstimateContext context{run.scenario.system};
  for (const BatchPhase& phase : phases) {
    if (phase.gbs == plan.gbs) {
      add_phase(run.scenario, context, step, phase.steps, question, run);
    } else {
      const Scenario smaller = at_batch(run.scenario, phase.gbs);
      add_phase(smaller, context, step_time(smaller, context), phase.steps, question, run);
    }
  }
  // Groups that can be away at one batch and not at another must be there.
  std::size_t least = run.setup.phases.front().by_away.size();
  for (const ReplicatePhase& phase : run.setup.phases)
    least = std::min(least, phase.by_away.size());
  for (ReplicatePhase& phase : run.setup.phases) phase.by_away.resize(least);
}

// Knots beyond which no GPU is slower, but for one of healthy ones in millions.
constexpr double beyond_any = 5.0;

SlowStates simulated_slow_states(const Scenario& scenario, const Slowness& slowness, int workers) {
  const double slowest = std::max(slowness.most, beyond_any * slowness.deviation);
  SlowStates states{{0.0, 0.5 * slowest, slowest}, {}};
  const auto ratios = slow_step_ratios(scenario, {0.5 * slowest, slowest}, workers);
  for (const std::vector<double>& of_stage : ratios)
    states.ratios.push_back({1.0, of_stage[0], of_stage[1]});
  return states;
}

void add_slowness(const RunQuestion& question, PreparedRun& run) {
  const Reliability& profile = question.reliability;
  const RunPolicy& policy = question.policy;
  const Plan& plan = run.scenario.plan;
  if (policy.speeds && profile.speed_deviation == 0.0)
    fail_input(
        {"", "--speeds"}, "'" + profile.name + "' does not say how healthy GPUs differ",
        "add \"speeds\": {\"deviation\": 0.015, \"source\": ...} to the profile, or leave it out");
  if (policy.evict && profile.slow.per_gpu_day == 0.0)
    fail_input(
        {"", "--evict"}, "no GPU of '" + profile.name + "' becomes slow",
        "add \"slow_gpus\" to the profile (docs/reference/failure-models.md), or leave it out");
  Slowness slow;
  slow.per_day = profile.slow.per_gpu_day * plan.gpus();
  slow.error = {profile.slow.events, profile.spread};
  slow.least = profile.slow.least;
  slow.most = profile.slow.most;
  slow.found_low = whole_micros(profile.slow.detection.low);
  slow.found_high = whole_micros(profile.slow.detection.high);
  if (policy.speeds) slow.deviation = profile.speed_deviation;
  if (!slow.any()) return;
  slow.gpus_of_stage.assign(static_cast<std::size_t>(plan.pp), plan.gpus() / plan.pp);
  slow.units = plan.gpus() / run.gpus_of_unit;
  slow.repair_us = run.distribution.repair_us;
  if (policy.evict) slow.evict = policy.evict->longer;
  const SlowStates states = question.slow_states
                                ? *question.slow_states
                                : simulated_slow_states(run.scenario, slow, question.workers);
  slow.knots = states.knots;
  slow.ratios = states.ratios;
  run.setup.slowness = std::move(slow);
}

}  // namespace

double PreparedRun::steps() const {
  double steps = 0.0;
  for (const RunPhase& phase : phases) steps += phase.steps;
  return steps;
}

Seconds PreparedRun::without_interruption() const {
  Seconds time;
  for (const RunPhase& phase : phases) time += phase.step * phase.steps;
  return time;
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
                  idle_units(scenario),
                  rented_idle_units(scenario, profile),
                  {},
                  distribution_of(profile, gpus),
                  {}};
  ReplicateSetup& setup = run.setup;
  setup.causes = causes_of(profile, policy.checkpoints);
  setup.restart = whole_micros(profile.restart.at(gpus));
  setup.regroup = whole_micros(profile.regroup.at(gpus));
  setup.elastic = policy.elastic;
  setup.replicas_hold_all = replicas_hold_all(scenario.plan);
  setup.units = std::max(1, gpus / run.gpus_of_unit);
  setup.groups = groups_of_job(scenario);
  setup.racks = racks_of(scenario);
  setup.spares = policy.spares.value_or(unlimited_spares);
  setup.refill = refill_of(profile);
  if (question.faults) replay(*question.faults, run);
  add_slowness(question, run);

  add_phases(step, question, run);
  for (const RunTier& tier : run.tiers())
    setup.tiers.push_back({whole_micros(tier.times.stall), whole_micros(tier.times.write),
                           whole_micros(tier.times.load)});
  setup.give_up =
      whole_micros(run.without_interruption() * hopeless) + whole_micros(Seconds{86400.0});
  double best = 0.0;
  for (std::size_t i = 0; i < run.tiers().size(); ++i) best = std::max(best, expected_ettr(run, i));
  if (best < 1.0 / hopeless)
    fail_infeasible({"", "--reliability"},
                    "with a failure every " + span_text(Seconds{86400.0 / profile.per_day(gpus)}) +
                        " hardly anything lasts until the next checkpoint",
                    "save more often, recover faster, or use fewer GPUs");
  return run;
}

Seconds replacement_stop(const PreparedRun& run) {
  const ReplicateTier& last = run.setup.tiers.back();
  const Micros start = run.setup.elastic ? run.setup.regroup : run.setup.restart;
  return Seconds{static_cast<double>(last.stall + last.write + last.load + start) / 1e6};
}

double expected_ettr(const PreparedRun& run, std::size_t place, double factor) {
  const FailureTime failures{run.setup.causes, run.distribution.per_day,
                             factor / run.distribution.mean_batch()};
  const Seconds start =
      Seconds{static_cast<double>(run.setup.restart) / 1e6} + run.tiers()[place].times.load;
  Seconds steps, all;
  for (const RunPhase& phase : run.phases) {
    const RunTier& tier = phase.tiers[place];
    const Seconds work = phase.step * static_cast<double>(tier.steps);
    const Seconds slowed = tier.slowed * std::ceil(tier.times.write / phase.step);
    const Seconds stop = tier.times.stall + tier.times.write + start;
    steps += phase.step * phase.steps;
    all += phase.step * phase.steps *
           failures.over_steps({work, tier.times.stall + slowed, tier.times.write}, start, stop);
  }
  return steps / all;
}

double expected_ettr(const PreparedRun& run) { return expected_ettr(run, run.tiers().size() - 1); }

}  // namespace orrery
