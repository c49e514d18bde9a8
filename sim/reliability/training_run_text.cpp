#include <algorithm>
#include <cmath>
#include <map>

#include "sim/core/number_text.hpp"
#include "sim/core/table.hpp"
#include "sim/reliability/reliability_text.hpp"
#include "sim/reliability/training_run.hpp"
#include "sim/training/training_text.hpp"

namespace orrery {
namespace {

const std::string in_nine = " (90 % interval)";

// Enough decimals to distinguish policies.
std::string days_text(double days) { return fixed(days, days < 10.0 ? 2 : 1) + " days"; }

std::string days_range(const ChanceRange& days) {
  const int decimals = days.high < 10.0 ? 2 : 1;
  return fixed(days.low, decimals) + " .. " + fixed(days.high, decimals) + in_nine +
         (days.heavy_tailed() ? "; median, mean " + days_text(days.mean) : "");
}

std::string percent_range(const ChanceRange& share) {
  return fixed(100.0 * share.low, 1) + " .. " + fixed(100.0 * share.high, 1) + in_nine +
         (share.heavy_tailed() ? "; median, " + percent(share.mean) + " of all runs' time" : "");
}

// Adds the time of a ramp, and that of its tokens at the plan's batch.
void add_ramp(Table& table, const PreparedRun& run) {
  if (run.phases.size() < 2) return;
  double tokens = 0.0;
  Seconds time, at_full;
  for (const RunPhase& phase : run.phases) {
    if (&phase == &run.phases.back()) break;
    const double samples = phase.steps * static_cast<double>(phase.gbs);
    tokens += samples * static_cast<double>(run.scenario.plan.seq);
    time += phase.step * phase.steps;
    at_full += run.step * (samples / static_cast<double>(run.scenario.plan.gbs));
  }
  const auto before = static_cast<std::int64_t>(run.phases.size()) - 1;
  table.add_row({"Ramp", days_text(time.si() / 86400.0),
                 "for the first " + tokens_text(tokens) + " tokens, at " + grouped(before) +
                     (before == 1 ? " smaller batch" : " smaller batches") + "; " +
                     days_text(at_full.si() / 86400.0) + " at the full one"});
}

std::string lost_text(const RunFigures& figures) {
  std::vector<std::pair<double, std::string>> parts;
  for (std::size_t i = 1; i < run_times; ++i)
    if (figures.shares[i] >= 0.0005)
      parts.emplace_back(figures.shares[i], words(static_cast<RunTime>(i)));
  std::stable_sort(parts.begin(), parts.end(), [](auto& a, auto& b) { return a.first > b.first; });
  std::vector<std::string> items;
  for (const auto& [share, what] : parts) items.push_back(what + " " + percent(share));
  if (items.empty()) return "";
  return wrapped("  lost to        ", items, ", ", 78);
}

std::string causes_text(const TrainingRun& run) {
  const Reliability& profile = run.question.reliability;
  std::vector<double> by_group(profile.groups.size());
  std::vector<std::string> names(profile.groups.size());
  double all = 0.0;
  for (std::size_t i = 0; i < profile.causes.size(); ++i) {
    const FailureCause& cause = profile.causes[i];
    // A group says how failures are handled: one cause alone is not all that its name covers.
    names[cause.group] = names[cause.group].empty() ? cause.name : profile.groups[cause.group].name;
    by_group[cause.group] += run.figures.by_cause[i];
    all += run.figures.by_cause[i];
  }
  std::vector<std::string> items;
  for (std::size_t i = 0; i < by_group.size(); ++i)
    if (by_group[i] > 0.0) items.push_back(names[i] + " " + percent(by_group[i] / all));
  if (items.empty()) return "";
  return wrapped("  interrupted by ", items, ", ", 78);
}

// A time like "2.84 s"; above a hundred seconds in a larger unit.
std::string short_text(Seconds span) {
  return span < Seconds{100.0} ? fixed(span.si(), 2) + " s" : span_text(span);
}

std::string interval_text(const RunTier& tier, Seconds step) {
  const Seconds every = step * static_cast<double>(tier.steps);
  return "every " + span_text(every) + " (" + plural(tier.steps, "step") + ")";
}

// Least shown lengthening of a step by a write.
constexpr double least_shown = 5e-4;

void add_tiers(Table& table, const PreparedRun& run) {
  for (const RunTier& tier : run.tiers()) {
    table.add_row({"Checkpoint", name(tier.tier),
                   interval_text(tier, run.step) + "; training stalls " +
                       short_text(tier.times.stall) + ", durable after " +
                       short_text(tier.times.write)});
    if (const double longer = tier.slowed / run.step; longer >= least_shown)
      table.add_row({"", "", "steps during the write take " + percent(longer) + " longer"});
    if (tier.best > Seconds{})
      table.add_row({"", "",
                     "best: every " + span_text(tier.best) + "; by Young's formula " +
                         span_text(tier.young)});
  }
}

std::string spares_text(const TrainingRun& run) {
  const std::string each = "of " + plural(run.prepared.gpus_of_unit, "GPU") + " each";
  if (!run.question.policy.spares)
    return each + " cover 99 % of the time; here " +
           (run.question.faults ? "all other servers of the fleet are spares" : "unlimited");
  return each + "; more are in repair " + percent(run.spares.short_of) + " of the time; " +
         grouped(run.spares.units) + " would cover 99 % of it";
}

std::string energy_lines(const RunBill& bill) {
  const std::string all = energy_text(bill.energy_kwh);
  if (all.empty()) return "";
  const std::string price = dollars_text(bill.energy_usd);
  std::vector<std::string> parts{"of it while training stalls " + energy_text(bill.stopped_kwh)};
  if (bill.spares > 0.0) parts.push_back("by spares " + energy_text(bill.spares_kwh));
  return "  energy         " + all + (price.empty() ? "" : ", " + price) + "\n" +
         wrapped(std::string(17, ' '), parts, ", ", text_columns);
}

std::string worth_text(const TrainingRun& run) {
  constexpr double seen = 0.005;  // Days, as they are printed.
  if (std::none_of(run.worth.begin(), run.worth.end(),
                   [](const Improvement& one) { return std::abs(one.days.mean) >= seen; }))
    return "";
  Table table{
      {{"  Savings by", Align::left}, {"days"}, {"90 % interval"}, {"ETTR"}, {"rent", Align::left}},
      0};
  for (const Improvement& one : run.worth)
    if (std::abs(one.days.mean) >= seen)
      table.add_row({"  " + one.what, fixed(one.days.typical(), 2),
                     fixed(one.days.low, 2) + " .. " + fixed(one.days.high, 2) +
                         (one.days.heavy_tailed() ? ", mean " + fixed(one.days.mean, 2) : ""),
                     (one.ettr < 0.0 ? "-" : "+") + fixed(100.0 * std::abs(one.ettr), 1),
                     saved_rent_text(one)});
  return table.text() + "\n";
}

std::string slow_text(const TrainingRun& run) {
  if (run.slow.empty()) return "";
  Table table{{{"  A GPU slower by " + percent(run.question.slower) + " in", Align::left},
               {"step"},
               {"replacement pays if this much remains", Align::left}},
              0};
  for (std::size_t i = 0; i < run.slow.size();) {
    std::size_t end = i + 1;
    while (end < run.slow.size() &&
           signed_percent(run.slow[end].longer) == signed_percent(run.slow[i].longer))
      ++end;
    const std::string first = std::to_string(i), last = std::to_string(end - 1);
    const Seconds pays = run.slow[i].pays_after;
    table.add_row({end - i == 1 ? "  stage " + first : "  stages " + first + " to " + last,
                   signed_percent(run.slow[i].longer),
                   std::isfinite(pays.si()) ? span_text(pays) : "never"});
    i = end;
  }
  return table.text() + "\n";
}

std::string slower_text(double slower) {
  constexpr double seen = 0.0005;
  return slower < seen ? "any" : std::isfinite(slower) ? percent(slower) : "never";
}

std::string evictions_text(const TrainingRun& run) {
  if (run.evictions.empty()) return "";
  const SlowGpus& slow = run.question.reliability.slow;
  Table table{{{"  A GPU that became slow in", Align::left},
               {"is replaced from", Align::left},
               {"step at " + percent(slow.most)}},
              0};
  for (std::size_t i = 0; i < run.evictions.size();) {
    const auto same = [&](const StageEviction& one, const StageEviction& other) {
      return slower_text(one.from) == slower_text(other.from) &&
             signed_percent(one.longer) == signed_percent(other.longer);
    };
    std::size_t end = i + 1;
    while (end < run.evictions.size() && same(run.evictions[end], run.evictions[i])) ++end;
    const std::string first = std::to_string(i), last = std::to_string(end - 1);
    table.add_row({end - i == 1 ? "  stage " + first : "  stages " + first + " to " + last,
                   slower_text(run.evictions[i].from), signed_percent(run.evictions[i].longer)});
    i = end;
  }
  return table.text() +
         (run.question.policy.evict->longer > 0.0 ? "" : "  with half of the run left\n") + "\n";
}

}  // namespace

std::string words(RunTime time) {
  switch (time) {
    case RunTime::productive:
      return "steps";
    case RunTime::slowed_by_writes:
      return "concurrent checkpoint writes";
    case RunTime::replicas_away:
      return "replicas away";
    case RunTime::redone:
      return "redone work";
    case RunTime::saving:
      return "checkpoints";
    case RunTime::detecting:
      return "detection";
    case RunTime::waiting:
      return "no spare";
    case RunTime::restarting:
      return "restart";
    case RunTime::slow_gpus:
      return "slow GPUs";
  }
  return "";
}

std::string saved_rent_text(const Improvement& improvement) {
  const std::string rent = dollars_text(improvement.rent_usd);
  return rent.empty() || improvement.gpu_hours >= 0.0 ? rent : rent + " more";
}

std::string training_run_text(const TrainingRun& run) {
  const PreparedRun& prepared = run.prepared;
  const Scenario& scenario = prepared.scenario;
  const RunFigures& figures = run.figures;
  std::string text = run_heading(scenario.model.name + " on " + scenario.system.name + ", " +
                                     plural(scenario.plan.gpus(), "GPU"),
                                 plan_items(scenario.plan)) +
                     wrapped_words(run.question.faults ? "Faults, replayed, of " : "Failures of ",
                                   reliability_text(run.question.reliability), text_columns) +
                     "\n";
  Table table{{{"", Align::left}, {""}, {"", Align::left}}, 0};
  table.add_row({"Run", days_text(figures.days.typical()),
                 days_range(figures.days) + "; " +
                     days_text(prepared.without_interruption().si() / 86400.0) + " uninterrupted"});
  add_ramp(table, prepared);
  table.add_row({"Goodput", percent(figures.goodput.typical()), percent_range(figures.goodput)});
  const std::string formula = run.expected_ettr
                                  ? "; " + percent(*run.expected_ettr) + " by the formula" +
                                        (run.question.policy.spares ? " at constant rates" : "")
                                  : "";
  table.add_row({"ETTR", percent(figures.ettr.typical()), percent_range(figures.ettr) + formula});
  const ChanceRange& count = figures.interruptions;
  const int decimals = count.mean < 10.0 ? 1 : 0;
  const std::string mean =
      count.heavy_tailed() ? "; median, mean " + fixed(count.mean, decimals) : "";
  table.add_row(
      {"Interruptions", fixed(count.typical(), decimals),
       fixed(count.low, 0) + " .. " + fixed(count.high, 0) + in_nine + mean +
           (count.mean > 0.0
                ? ", one each " + span_text(Seconds{86400.0 * figures.days.mean / count.mean})
                : "")});
  if (run.question.policy.evict)
    table.add_row({"Evictions", fixed(figures.evictions.typical(), 1),
                   fixed(figures.evictions.low, 0) + " .. " + fixed(figures.evictions.high, 0) +
                       in_nine + ": slow GPUs replaced"});
  add_tiers(table, prepared);
  table.add_row({"Spares", grouped(run.spares.kept), spares_text(run)});
  if (const auto refill = run.question.reliability.refill; refill && !run.question.faults)
    table.add_row({"", "", "a fresh one comes after " + span_text(*refill) + " of repair"});
  if (const Racks& racks = prepared.setup.racks; racks.island > 1)
    table.add_row({"", "",
                   "where a node is down, " + std::to_string(racks.island) +
                       " nodes of one rack take over its NVLink group"});
  if (prepared.idle_units > 0)
    table.add_row({"", "",
                   grouped(prepared.idle_units) + " more are idle in the job's racks, " +
                       grouped(prepared.rented_idle) + " of them rented with it"});
  text += table.text() + lost_text(figures) + causes_text(run);
  const std::string rent = dollars_text(run.bill.rent_usd);
  if (!rent.empty())
    text += "  rent           " + rent + ": retained steps " + percent(run.bill.steps) +
            ", recomputed " + percent(run.bill.redone) + ",\n                 stalled " +
            percent(run.bill.stopped) + ", spares " + percent(run.bill.spares) + "\n";
  text += energy_lines(run.bill);
  if (const std::string& provider = scenario.system.provider;
      !provider.empty() && !rent.empty() && !run.bill.has_own_rent)
    text += "\n" + wrapped_words("", rent_note(provider), 78);
  return text + "\n" + worth_text(run) + slow_text(run) + evictions_text(run) +
         plural(run.question.replicates, "run") + ", seed " + std::to_string(run.question.seed) +
         "\n";
}

std::string sampled_run_line(const TrainingRun& run) {
  const PreparedRun& prepared = run.prepared;
  const ChanceRange& days = run.figures.days;
  const std::string rent = dollars_text(run.bill.rent_usd);
  const int spares = (run.spares.kept + prepared.rented_idle) * prepared.gpus_of_unit;
  return "\nWith failures of " + run.question.reliability.name + "  " + days_text(days.typical()) +
         ", " + days_range(days) + (rent.empty() ? "" : "; " + rent) + "\n  a checkpoint every " +
         span_text(prepared.step * static_cast<double>(prepared.tiers().back().steps)) + ", " +
         plural(spares, "spare GPU") + (rent.empty() ? "" : " in the rent") +
         "; orrery run says more\n";
}

}  // namespace orrery
