#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/core/figures.hpp"
#include "sim/engine/network_model.hpp"
#include "sim/reliability/reliability_text.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

// Also of intervals of centuries, which failures that hardly ever come want.
double rounded(double value) { return std::round(value * 1e9) / 1e9; }
double seconds(Micros time) { return static_cast<double>(time) / 1e6; }

Json range_json(const ChanceRange& range) {
  return {{"mean", rounded(range.mean)},
          {"low", rounded(range.low)},
          {"high", rounded(range.high)},
          {"median", rounded(range.median)}};
}

Json money(Range range) {
  if (!range.known()) return nullptr;
  return {{"low", rounded(range.low)}, {"high", rounded(range.high)}};
}

// The saved rent is negative if the change costs more.
Json saved_money(const Improvement& one) {
  if (one.gpu_hours >= 0.0 || !one.rent_usd.known()) return money(one.rent_usd);
  return {{"low", rounded(-one.rent_usd.high)}, {"high", rounded(-one.rent_usd.low)}};
}

Json or_null(Seconds time) { return time > Seconds{} ? Json(rounded(time.si())) : Json(nullptr); }

Json tiers_json(const PreparedRun& run) {
  Json tiers = Json::array();
  for (const RunTier& tier : run.tiers())
    tiers.push_back({{"tier", name(tier.tier)},
                     {"every_steps", tier.steps},
                     {"every_s", rounded(run.step.si() * static_cast<double>(tier.steps))},
                     {"best_s", or_null(tier.best)},
                     {"young_s", or_null(tier.young)},
                     {"stall_s", rounded(tier.times.stall.si())},
                     {"write_s", rounded(tier.times.write.si())},
                     {"load_s", rounded(tier.times.load.si())},
                     {"step_slowed_s", rounded(tier.slowed.si())}});
  return tiers;
}

Json phases_json(const PreparedRun& run) {
  Json phases = Json::array();
  for (const RunPhase& phase : run.phases)
    phases.push_back({{"gbs", phase.gbs},
                      {"steps", phase.steps},
                      {"step_time_s", rounded(phase.step.si())},
                      {"checkpoint_every_steps", phase.tiers.back().steps}});
  return phases;
}

Json causes_json(const TrainingRun& run) {
  const Reliability& profile = run.question.reliability;
  Json causes = Json::array();
  for (std::size_t i = 0; i < profile.causes.size(); ++i)
    causes.push_back({{"cause", profile.causes[i].name},
                      {"group", profile.groups[profile.causes[i].group].name},
                      {"per_day", rounded(run.prepared.distribution.per_day[i])},
                      {"interruptions", rounded(run.figures.by_cause[i])}});
  return causes;
}

}  // namespace

std::string training_run_json(const TrainingRun& run) {
  const PreparedRun& prepared = run.prepared;
  const Plan& plan = prepared.scenario.plan;
  Json shares = Json::object();
  for (std::size_t i = 0; i < run_times; ++i)
    shares[name(static_cast<RunTime>(i))] = rounded(run.figures.shares[i]);
  Json worth = Json::array();
  for (const Improvement& one : run.worth)
    worth.push_back({{"improvement", one.what},
                     {"days_saved", range_json(one.days)},
                     {"ettr_gained", rounded(one.ettr)},
                     {"rent_saved_usd", saved_money(one)}});
  Json slow = Json::array();
  for (const SlowGpu& one : run.slow)
    slow.push_back({{"stage", one.stage},
                    {"slower", run.question.slower},
                    {"step_longer", rounded(one.longer)},
                    {"replacing_pays_after_s",
                     one.longer > 0.0 ? Json(rounded(one.pays_after.si())) : Json(nullptr)}});
  Json evicted = Json::array();
  for (const StageEviction& one : run.evictions)
    evicted.push_back({{"stage", one.stage},
                       {"step_longer", rounded(one.longer)},
                       {"replaced_from_slower",
                        std::isfinite(one.from) ? Json(rounded(one.from)) : Json(nullptr)}});
  return Json{
             {"schema", "orrery.run/1"},
             {"simulator", name(chosen_simulator())},
             {"model", prepared.scenario.model.name},
             {"system", prepared.scenario.system.name},
             {"gpus", plan.gpus()},
             {"reliability", run.question.reliability.name},
             {"faults_replayed",
              run.question.faults ? Json(run.question.faults->faults.size()) : Json(nullptr)},
             {"tokens", run.question.tokens},
             {"replicates", run.question.replicates},
             {"seed", run.question.seed},
             {"elastic", run.question.policy.elastic},
             {"step_time_s", rounded(prepared.step.si())},
             {"steps", prepared.steps()},
             {"phases", phases_json(prepared)},
             {"days", range_json(run.figures.days)},
             {"days_without_interruption", rounded(prepared.without_interruption().si() / 86400.0)},
             {"goodput", range_json(run.figures.goodput)},
             {"ettr", range_json(run.figures.ettr)},
             {"ettr_by_formula",
              run.expected_ettr ? Json(rounded(*run.expected_ettr)) : Json(nullptr)},
             {"time_shares", std::move(shares)},
             {"interruptions", range_json(run.figures.interruptions)},
             {"causes", causes_json(run)},
             {"checkpoint",
              {{"bytes", std::llround(prepared.size.total.si())},
               {"bytes_per_gpu", std::llround(prepared.size.a_gpu.si())},
               {"tiers", tiers_json(prepared)}}},
             {"restart_s", seconds(prepared.setup.restart)},
             {"spares",
              {{"units", run.spares.kept},
               {"gpus_per_unit", prepared.gpus_of_unit},
               {"units_for_99_percent", run.spares.units},
               {"refill_s", run.question.reliability.refill && !run.question.faults
                                ? Json(rounded(run.question.reliability.refill->si()))
                                : Json(nullptr)},
               {"short_share", rounded(run.spares.short_of)}}},
             {"worth", std::move(worth)},
             {"slow_gpu", std::move(slow)},
             {"evictions", range_json(run.figures.evictions)},
             {"evicted_by_stage", std::move(evicted)},
             {"bill",
              {{"gpu_hours", rounded(run.bill.gpu_hours)},
               {"rent_usd", money(run.bill.rent_usd)},
               {"shares",
                {{"steps", rounded(run.bill.steps)},
                 {"redone", rounded(run.bill.redone)},
                 {"standing", rounded(run.bill.stopped)},
                 {"spares", rounded(run.bill.spares)}}},
               {"energy_kwh", money(run.bill.energy_kwh)},
               {"energy_of",
                {{"standing_kwh", money(run.bill.stopped_kwh)},
                 {"spares_kwh", money(run.bill.spares_kwh)}}},
               {"energy_usd", money(run.bill.energy_usd)}}}}
             .dump(2) +
         "\n";
}

std::string training_run_csv(const std::vector<RunTotals>& runs) {
  std::vector<Figures> rows;
  for (const RunTotals& run : runs) {
    Figures& row = rows.emplace_back();
    row.add("replicate", rows.size() - 1);
    row.add("days", rounded(seconds(run.total()) / 86400.0));
    row.add("interruptions", run.all_interruptions());
    row.add("rate_factor", rounded(run.rate_factor));
    row.add("ettr", rounded(run.ettr()));
    row.add("goodput", rounded(run.goodput()));
    for (std::size_t i = 0; i < run_times; ++i)
      row.add(std::string{name(static_cast<RunTime>(i))} + "_s", rounded(seconds(run.of[i])));
  }
  return csv_of(rows, all_digits);
}

}  // namespace orrery
