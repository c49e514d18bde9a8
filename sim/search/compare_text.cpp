#include "sim/search/compare_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "sim/core/figures.hpp"
#include "sim/core/number_text.hpp"
#include "sim/engine/network_model.hpp"
#include "sim/reliability/reliability_text.hpp"
#include "sim/training/training_text.hpp"

namespace orrery {

std::string plan_label(std::size_t index) {
  return std::string(1, static_cast<char>('A' + static_cast<int>(index)));
}

namespace {

using Json = nlohmann::ordered_json;

// A plan or a run of it, and how it differs from the first.
struct Compared {
  Figures own, difference;
};

std::string cell_under(const std::string& heading, const Figures& of) {
  const std::vector<Column> columns = of.columns();
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (columns[i].header == heading) return of.cells()[i];
  return "";
}

// A column for each, and behind all but the first one for its difference; a line for each figure of
// the first.
Table side_by_side(const std::vector<Compared>& all) {
  std::vector<Column> columns{{"", Align::left}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    columns.push_back({plan_label(i)});
    if (i > 0) columns.push_back({plan_label(i) + " - " + plan_label(0)});
  }
  Table table{columns};
  const std::vector<Column> lines = all.front().own.columns();
  for (std::size_t line = 0; line < lines.size(); ++line) {
    std::vector<std::string> cells{lines[line].header};
    for (std::size_t i = 0; i < all.size(); ++i) {
      cells.push_back(all[i].own.cells()[line]);
      if (i > 0) cells.push_back(cell_under(lines[line].header, all[i].difference));
    }
    table.add_row(cells);
  }
  return table;
}

std::string interval_text(double low, double high, const std::function<std::string(double)>& text) {
  return text(low) + " .. " + text(high);
}

// The difference of B from A, as shares of A.
struct Verdict {
  double mean, low, high;
  bool tie;
};

// `what`: the quantity ("time"). `less`: less of it. `ends`: "it is faster", "it is slower".
std::string verdict_text(const std::string& label, const Verdict& of, const std::string& less,
                         const std::string& what, const std::array<std::string, 2>& ends) {
  const auto points = [](double share) { return signed_fixed(100.0 * share, 1); };
  return wrapped_words(
      "",
      label + " takes " + percent(std::abs(of.mean)) + " " + (of.mean < 0.0 ? less : "more") + " " +
          what + ", " + interval_text(of.low, of.high, points) + " % (90 % interval): " +
          (of.tie ? "a tie; the difference is not significant." : ends[of.mean < 0.0 ? 0 : 1]),
      78);
}

std::string key_of(const ComparedPlan& plan, const std::string& key) {
  for (const auto& [known, value] : plan.plan)
    if (known == key) return value;
  return "-";
}

std::vector<std::string> keys_of(const std::vector<PricedPlan>& plans) {
  std::vector<std::string> keys;
  for (const PricedPlan& one : plans)
    for (const auto& [key, value] : one.plan.plan)
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  return keys;
}

Seconds line_of(const std::vector<std::pair<std::string, Seconds>>& lines,
                const std::string& wanted) {
  for (const auto& [line, time] : lines)
    if (line == wanted) return time;
  return {};
}

// "tp_exposed" -> "tp exposed"
std::string spaced(std::string key) {
  std::replace(key.begin(), key.end(), '_', ' ');
  return key;
}

std::string rent_text(const PricedPlan& plan) {
  if (!plan.rent_usd_per_gpu_hour) return "-";
  const Range rent = plan.plan.usd_per_trillion_tokens(*plan.rent_usd_per_gpu_hour);
  const std::string low = grouped(std::llround(rent.low));
  const std::string high = grouped(std::llround(rent.high));
  return low == high ? low : low + " .. " + high;
}

// All that the plans have in common.
std::string heading(const std::vector<PricedPlan>& plans) {
  const ComparedPlan& first = plans.front().plan;
  const auto all = [&](const auto& of) {
    return std::all_of(plans.begin(), plans.end(),
                       [&](const PricedPlan& one) { return of(one.plan) == of(first); });
  };
  std::string what = first.model;
  if (all([](const ComparedPlan& plan) { return plan.range.system; }))
    what += " on " + first.range.system;
  if (all([](const ComparedPlan& plan) { return plan.gpus; }))
    what += ", " + grouped(first.gpus) + (first.gpus == 1 ? " GPU" : " GPUs");
  std::vector<std::string> items;
  const auto add = [&](const std::string& key, const std::string& before,
                       const std::string& after) {
    if (all([&](const ComparedPlan& plan) { return key_of(plan, key); }))
      items.push_back(before + key_of(first, key) + after);
  };
  add("gbs", "global batch ", "");
  if (all([](const ComparedPlan& plan) { return key_of(plan, "seq"); }))
    items.push_back("sequences of " + grouped(first.sequence) + " tokens");
  add("dtype", "", "");
  add("software", "software ", "");
  return items.empty() ? what + "\n" : run_heading(what, items);
}

Json lines_json(const std::vector<std::pair<std::string, Seconds>>& lines) {
  Json json = Json::object();
  for (const auto& [line, time] : lines) json[line] = time.si();
  return json;
}

// Is a line worth its place: does it not say the same of all plans?
template <class Cell>
bool differ(const std::vector<PricedPlan>& plans, const Cell& cell) {
  return std::any_of(plans.begin(), plans.end(), [&](const PricedPlan& one) {
    return cell(one.plan) != cell(plans.front().plan);
  });
}

DisplayUnit unit_of(const std::vector<PricedPlan>& plans) {
  Seconds longest;
  for (const PricedPlan& one : plans) longest = std::max(longest, one.plan.range.step);
  return time_unit(longest);
}

std::vector<Compared> compared(const std::vector<PricedPlan>& plans) {
  const DisplayUnit unit = unit_of(plans);
  const auto in_unit = [&](Seconds time) { return fixed(time.si() / unit.si, 3); };
  const auto more = [&](double seconds) { return signed_fixed(seconds / unit.si, 3); };
  const std::string step_heading = "step time, " + std::string{unit.name};
  const bool systems = differ(plans, [](const auto& plan) { return plan.range.system; });
  const bool sizes = differ(plans, [](const auto& plan) { return plan.gpus; });
  std::vector<Compared> all(plans.size());
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const ComparedPlan& plan = plans[i].plan;
    Json keys = Json::object(), rent;
    for (const auto& [key, value] : plan.plan) keys[key] = value;
    if (plans[i].rent_usd_per_gpu_hour) {
      const Range usd = plan.usd_per_trillion_tokens(*plans[i].rent_usd_per_gpu_hour);
      rent = {{"low", usd.low}, {"high", usd.high}};
    }
    Figures& own = all[i].own;
    own.add("label", plan_label(i));
    own.add("source", plan.source);
    own.add("model", plan.model);
    own.add("system", plan.range.system);
    own.add("gpus", plan.gpus);
    own.add("plan", keys);
    if (systems) own.show({"system"}, plan.range.system);
    if (sizes) own.show({"GPUs"}, grouped(plan.gpus));
    for (const std::string& key : keys_of(plans))
      if (differ(plans, [&](const auto& of) { return key_of(of, key); }))
        own.show({key}, key_of(plan, key));
    own.add("step_time_s", plan.range.step.si()).shown({step_heading}, in_unit(plan.range.step));
    own.add("step_time_range", {{"coverage", range_coverage},
                                {"low_s", plan.range.low().si()},
                                {"high_s", plan.range.high().si()}})
        .shown({"  90 % interval"},
               in_unit(plan.range.low()) + " .. " + in_unit(plan.range.high()));
    own.add("tokens_per_s_per_gpu", plan.tokens_per_s_per_gpu)
        .shown({"tokens/s/GPU"}, fixed(plan.tokens_per_s_per_gpu, 1));
    own.add("mfu", plan.mfu).shown({"MFU"}, percent(plan.mfu));
    own.add("peak_bytes", plan.peak.si()).shown({"memory, GB"}, fixed(plan.peak.si() / 1e9, 2));
    own.add("capacity_bytes", plan.capacity.si())
        .shown({"  of GPU"}, percent(plan.peak / plan.capacity));
    own.add("critical_path_s", lines_json(plan.critical_path));
    own.add("usd_per_trillion_tokens", rent)
        .shown({"rent, $ per 1e12 tokens"}, rent_text(plans[i]));
    own.add("simulator", name(plan.simulator));
    if (i == 0) continue;
    const PlanDifference between = difference(plans.front().plan, plan);
    const StepDifference& step = between.step;
    Figures& other = all[i].difference;
    other.add("from", plan_label(0));
    other.add("to", plan_label(i));
    other.add("step_time_s", step.mean.si()).shown({step_heading}, more(step.mean.si()));
    other.show({"  90 % interval"}, interval_text(step.low().si(), step.high().si(), more));
    other.add("low_s", step.low().si());
    other.add("high_s", step.high().si());
    other.add("tie", step.is_tie());
    other.add("critical_path_s", lines_json(between.critical_path));
  }
  return all;
}

// The lines of the critical paths, but for those that no plan has.
Table waits_table(const std::vector<PricedPlan>& plans) {
  const DisplayUnit unit = unit_of(plans);
  const auto in_unit = [&](Seconds time) { return fixed(time.si() / unit.si, 3); };
  std::vector<Compared> all(plans.size());
  const auto add = [&](const std::string& line, const auto& time_of, const auto& longer_of) {
    if (std::all_of(plans.begin(), plans.end(), [&](const PricedPlan& one) {
          return in_unit(time_of(one.plan)) == in_unit({});
        }))
      return;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      all[i].own.show({spaced(line)}, in_unit(time_of(plans[i].plan)));
      if (i > 0)
        all[i].difference.show(
            {spaced(line)},
            signed_fixed(longer_of(difference(plans.front().plan, plans[i].plan)).si() / unit.si,
                         3));
    }
  };
  for (const auto& [line, time] : plans.front().plan.critical_path) {
    const auto of = [&wanted = line](const auto& one) {
      return line_of(one.critical_path, wanted);
    };
    add(line, of, of);
  }
  add(
      "step", [](const ComparedPlan& plan) { return plan.range.step; },
      [](const PlanDifference& of) { return of.step.mean; });
  return side_by_side(all);
}

}  // namespace

Document compare_document(const std::vector<PricedPlan>& plans) {
  const ComparedPlan& first = plans.front().plan;
  Document document;
  document.title(heading(plans));
  document.gap();
  std::string called;
  for (std::size_t i = 0; i < plans.size(); ++i)
    called +=
        plan_label(i) + "  " + plans[i].plan.source +
        (plans[i].plan.simulator == Simulator::simgrid ? std::string{" ("} + simgrid_note + ")"
                                                       : "") +
        "\n";
  document.lines(called);
  document.gap();
  document.table(side_by_side(compared(plans)));
  document.gap();
  document.heading("What the steps wait for, " + std::string{unit_of(plans).name});
  document.table(waits_table(plans));
  document.gap();
  for (std::size_t i = 1; i < plans.size(); ++i) {
    const StepDifference step = difference(first, plans[i].plan).step;
    const double of_first = first.range.step.si();
    document.paragraph(verdict_text(
        plan_label(i),
        {step.mean.si() / of_first, step.low().si() / of_first, step.high().si() / of_first,
         step.is_tie()},
        "less",
        "time than A" +
            std::string{first.tokens == plans[i].plan.tokens ? "" : " for as many tokens"},
        {"it is faster.", "it is slower."}));
  }
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const ComparedPlan& plan = plans[i].plan;
    if (plan.peak > plan.capacity)
      document.paragraph("Warning: " + plan_label(i) + " needs " +
                         percent(plan.peak / plan.capacity - 1.0) +
                         " more memory than a GPU has.\n");
  }
  return document;
}

std::string compare_json(const std::vector<PricedPlan>& plans, const std::string& runs) {
  Json list = Json::array(), differences = Json::array();
  for (const Compared& one : compared(plans)) {
    list.push_back(one.own.json());
    if (list.size() > 1) differences.push_back(one.difference.json());
  }
  Json json{{"schema", "orrery.compare/1"},
            {"plans", std::move(list)},
            {"differences", std::move(differences)}};
  if (!runs.empty()) json["runs"] = Json::parse(runs);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

namespace {

// Enough decimals to distinguish two plans.
int decimals_of(const std::vector<ComparedRun>& runs) {
  double least = runs.front().run.figures.days.typical();
  for (const ComparedRun& one : runs) least = std::min(least, one.run.figures.days.typical());
  return least < 10.0 ? 2 : 1;
}

// One profile for all of them, or each its own.
std::string profiles(const std::vector<ComparedRun>& runs) {
  std::string text;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunQuestion& question = runs[i].run.question;
    const std::string own = (question.faults ? "faults, replayed, of " : "failures of ") +
                            reliability_text(question.reliability);
    if (i == 0)
      text = own;
    else if (text.find(own) == text.npos)
      text += "; " + plan_label(i) + " " + own;
  }
  return text;
}

Json bare_range_json(const ChanceRange& range) {
  return {{"mean", range.mean}, {"low", range.low}, {"high", range.high}, {"median", range.median}};
}

template <class Text>
std::string typical_text(const ChanceRange& range, const Text& text) {
  return text(range.typical()) + (range.heavy_tailed() ? " (median)" : "");
}

std::vector<Compared> compared(const std::vector<ComparedRun>& runs) {
  const int decimals = decimals_of(runs);
  const auto days = [&](double value) { return fixed(value, decimals); };
  const auto more = [&](double value) { return signed_fixed(value, decimals); };
  const auto share = [](double value) { return fixed(100.0 * value, 1); };
  std::vector<Compared> all(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const TrainingRun& run = runs[i].run;
    const RunFigures& of = run.figures;
    const RunTier& tier = run.prepared.tiers().back();
    const double undisturbed = run.prepared.without_interruption().si() / 86400.0;
    const Range& usd = run.bill.rent_usd;
    Figures& own = all[i].own;
    own.add("label", plan_label(i));
    own.add("tokens", run.question.tokens);
    own.add("reliability", run.question.reliability.name);
    own.add("replicates", run.question.replicates);
    own.add("seed", run.question.seed);
    own.add("days", bare_range_json(of.days)).shown({"days"}, typical_text(of.days, days));
    own.show({"  90 % interval, by failures"}, interval_text(of.days.low, of.days.high, days));
    own.show({"  and by step times"}, "");
    own.add("days_without_interruption", undisturbed)
        .shown({"  without interruption"}, days(undisturbed));
    own.add("goodput", bare_range_json(of.goodput))
        .shown({"goodput, %"}, typical_text(of.goodput, share));
    own.show({"  90 % interval"}, interval_text(of.goodput.low, of.goodput.high, share));
    own.add("ettr", bare_range_json(of.ettr)).shown({"ETTR, %"}, typical_text(of.ettr, share));
    own.add("interruptions", bare_range_json(of.interruptions))
        .shown({"interruptions"},
               typical_text(of.interruptions, [](double count) { return fixed(count, 0); }));
    own.show({"checkpoint, minutes"},
             fixed((run.prepared.step * static_cast<double>(tier.steps)).si() / 60.0, 1));
    own.add("spares", run.spares.kept).shown({"spares"}, grouped(run.spares.kept));
    own.add("rent_usd", usd.known() ? Json{{"low", usd.low}, {"high", usd.high}} : Json(nullptr))
        .shown({"rent with spares"}, usd.known() ? dollars_text(usd) : "-");
    if (i == 0) continue;
    const RunDifference between = difference(runs.front(), runs[i]);
    Figures& other = all[i].difference;
    other.add("from", plan_label(0));
    other.add("by_failures", bare_range_json(between.chance))
        .shown({"days"}, typical_text(between.chance, more));
    other.show({"  90 % interval, by failures"},
               interval_text(between.chance.low, between.chance.high, more));
    other.show({"  and by step times"}, interval_text(between.low(), between.high(), more));
    other.add("low", between.low());
    other.add("high", between.high());
    other.add("tie", between.is_tie());
  }
  return all;
}

}  // namespace

Document compared_runs_document(const std::vector<ComparedRun>& runs) {
  const RunQuestion& question = runs.front().run.question;
  Document document;
  document.gap();
  document.heading(tokens_text(question.tokens) + " tokens with " + profiles(runs));
  document.gap();
  document.table(side_by_side(compared(runs)));
  document.gap();
  for (std::size_t i = 1; i < runs.size(); ++i) {
    const RunDifference between = difference(runs.front(), runs[i]);
    const double days = runs.front().run.figures.days.typical();
    document.paragraph(verdict_text(plan_label(i),
                                    {between.chance.typical() / days, between.low() / days,
                                     between.high() / days, between.is_tie()},
                                    "fewer", "days than A",
                                    {"it finishes sooner.", "it finishes later."}));
  }
  document.paragraph(grouped(question.replicates) + " runs of each under the same failures, seed " +
                     std::to_string(question.seed) + "\n");
  return document;
}

std::string compared_runs_json(const std::vector<ComparedRun>& runs) {
  Json list = Json::array();
  for (const Compared& one : compared(runs)) {
    const bool first = list.empty();
    list.push_back(one.own.json());
    if (!first) list.back()["days_longer"] = one.difference.json();
  }
  return list.dump();
}

}  // namespace orrery
