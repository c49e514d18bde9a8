#include "sim/search/compare_text.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "sim/core/number_text.hpp"
#include "sim/core/table.hpp"
#include "sim/engine/network_model.hpp"
#include "sim/reliability/reliability_text.hpp"
#include "sim/training/bill_text.hpp"
#include "sim/training/plan_heading.hpp"

namespace orrery {
namespace {

constexpr int compared_width = 78;

class Columns {
 public:
  explicit Columns(const std::vector<PricedPlan>& plans)
      : plans_{plans}, table_{headers(plans.size())} {}

  using Cell = std::function<std::string(const PricedPlan&)>;
  using Difference = std::function<std::string(std::size_t)>;
  void add(const std::string& what, const Cell& cell, const Difference& difference = nullptr) {
    std::vector<std::string> cells{what};
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      cells.push_back(cell(plans_[i]));
      if (i > 0) cells.push_back(difference ? difference(i) : "");
    }
    table_.add_row(cells);
  }
  /// A line that says the same of all plans is left out.
  void add_if_different(const std::string& what, const Cell& cell) {
    const std::string first = cell(plans_.front());
    if (std::any_of(plans_.begin(), plans_.end(),
                    [&](const PricedPlan& plan) { return cell(plan) != first; }))
      add(what, cell);
  }
  const Table& table() const { return table_; }

 private:
  static std::vector<Column> headers(std::size_t plans) {
    std::vector<Column> columns{{"", Align::left}};
    for (std::size_t i = 0; i < plans; ++i) {
      columns.push_back({plan_label(i)});
      if (i > 0) columns.push_back({plan_label(i) + " - " + plan_label(0)});
    }
    return columns;
  }

  const std::vector<PricedPlan>& plans_;
  Table table_;
};

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

std::string verdict(const PricedPlan& first, const PricedPlan& other, const std::string& label,
                    const PlanDifference& difference) {
  const double step = first.plan.range.step.si();
  const double mean = difference.step.mean.si() / step;
  const std::string tokens = first.plan.tokens == other.plan.tokens ? "" : " for as many tokens";
  const std::string range = signed_fixed(100.0 * difference.step.low().si() / step, 1) + " .. " +
                            signed_fixed(100.0 * difference.step.high().si() / step, 1) +
                            " % in 9 of 10";
  const std::string about = "takes " + percent(std::abs(mean)) + (mean < 0.0 ? " less" : " more") +
                            " time than A" + tokens + ", " + range;
  std::string sentence = label + " " + about;
  sentence += difference.step.is_tie() ? ": a tie; the difference is not significant."
                                       : (mean < 0.0 ? ": it is faster." : ": it is slower.");
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < sentence.size();) {
    const std::size_t end = std::min(sentence.find(' ', begin), sentence.size());
    words.push_back(sentence.substr(begin, end - begin));
    begin = end + 1;
  }
  return wrapped("", words, " ", compared_width);
}

}  // namespace

std::string plan_label(std::size_t index) {
  return std::string(1, static_cast<char>('A' + static_cast<int>(index)));
}

namespace {

// What all plans have in common.
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

}  // namespace

Document compare_document(const std::vector<PricedPlan>& plans) {
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

  std::vector<PlanDifference> differences(1);
  Seconds longest;
  for (const PricedPlan& one : plans) longest = std::max(longest, one.plan.range.step);
  for (std::size_t i = 1; i < plans.size(); ++i)
    differences.push_back(difference(plans.front().plan, plans[i].plan));
  const DisplayUnit unit = time_unit(longest);
  const auto in_unit = [&](Seconds time) { return fixed(time.si() / unit.si, 3); };
  const auto signed_in_unit = [&](Seconds time) { return signed_fixed(time.si() / unit.si, 3); };

  Columns about{plans};
  about.add_if_different("system", [](const PricedPlan& p) { return p.plan.range.system; });
  about.add_if_different("GPUs", [](const PricedPlan& p) { return grouped(p.plan.gpus); });
  for (const std::string& key : keys_of(plans))
    about.add_if_different(key, [&](const PricedPlan& p) { return key_of(p.plan, key); });
  about.add(
      "step time, " + std::string{unit.name},
      [&](const PricedPlan& p) { return in_unit(p.plan.range.step); },
      [&](std::size_t i) { return signed_in_unit(differences[i].step.mean); });
  about.add(
      "  in 9 of 10",
      [&](const PricedPlan& p) {
        return in_unit(p.plan.range.low()) + " .. " + in_unit(p.plan.range.high());
      },
      [&](std::size_t i) {
        return signed_in_unit(differences[i].step.low()) + " .. " +
               signed_in_unit(differences[i].step.high());
      });
  about.add("tokens/s/GPU",
            [](const PricedPlan& p) { return fixed(p.plan.tokens_per_s_per_gpu, 1); });
  about.add("MFU", [](const PricedPlan& p) { return percent(p.plan.mfu); });
  about.add("memory, GB", [](const PricedPlan& p) { return fixed(p.plan.peak.si() / 1e9, 2); });
  about.add("  of GPU", [](const PricedPlan& p) { return percent(p.plan.peak / p.plan.capacity); });
  about.add("rent, $ per 1e12 tokens", rent_text);

  Columns time{plans};
  for (const auto& part : plans.front().plan.critical_path) {
    const std::string& line = part.first;
    const auto shown = [&](const PricedPlan& p) {
      return in_unit(line_of(p.plan.critical_path, line)) != in_unit({});
    };
    if (std::none_of(plans.begin(), plans.end(), shown)) continue;
    time.add(
        spaced(line),
        [&](const PricedPlan& p) { return in_unit(line_of(p.plan.critical_path, line)); },
        [&](std::size_t i) { return signed_in_unit(line_of(differences[i].critical_path, line)); });
  }
  time.add(
      "step", [&](const PricedPlan& p) { return in_unit(p.plan.range.step); },
      [&](std::size_t i) { return signed_in_unit(differences[i].step.mean); });

  document.gap();
  document.table(about.table());
  document.gap();
  document.heading("What the steps wait for, " + std::string{unit.name});
  document.table(time.table());
  document.gap();
  for (std::size_t i = 1; i < plans.size(); ++i)
    document.paragraph(verdict(plans.front(), plans[i], plan_label(i), differences[i]));
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const ComparedPlan& plan = plans[i].plan;
    if (plan.peak > plan.capacity)
      document.paragraph("Warning: " + plan_label(i) + " needs " +
                         percent(plan.peak / plan.capacity - 1.0) +
                         " more memory than a GPU has.\n");
  }
  return document;
}

namespace {

using Json = nlohmann::ordered_json;

constexpr int width = 78;

std::string range_text(double low, double high, const std::function<std::string(double)>& text) {
  return text(low) + " .. " + text(high);
}

std::vector<Column> headers(std::size_t plans) {
  std::vector<Column> columns{{"", Align::left}};
  for (std::size_t i = 0; i < plans; ++i) {
    columns.push_back({plan_label(i)});
    if (i > 0) columns.push_back({plan_label(i) + " - " + plan_label(0)});
  }
  return columns;
}

// Decimals enough to tell one plan from another.
int decimals_of(const std::vector<ComparedRun>& runs) {
  double least = runs.front().run.figures.days.mean;
  for (const ComparedRun& one : runs) least = std::min(least, one.run.figures.days.mean);
  return least < 10.0 ? 2 : 1;
}

std::string verdict(const ComparedRun& first, const RunDifference& difference,
                    const std::string& label) {
  const double days = first.run.figures.days.mean;
  const double share = difference.drawn.mean / days;
  std::string sentence = label + " takes " + percent(std::abs(share)) +
                         (share < 0.0 ? " fewer" : " more") + " days than A, " +
                         signed_fixed(100.0 * difference.low() / days, 1) + " .. " +
                         signed_fixed(100.0 * difference.high() / days, 1) + " % in 9 of 10";
  sentence += difference.is_tie() ? ": a tie; the difference is not significant."
                                  : (share < 0.0 ? ": it is done sooner." : ": it is done later.");
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < sentence.size();) {
    const std::size_t end = std::min(sentence.find(' ', begin), sentence.size());
    words.push_back(sentence.substr(begin, end - begin));
    begin = end + 1;
  }
  return wrapped("", words, " ", width);
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
  return {{"mean", range.mean}, {"low", range.low}, {"high", range.high}};
}

}  // namespace

Document compared_runs_document(const std::vector<ComparedRun>& runs) {
  std::vector<RunDifference> differences(1);
  for (std::size_t i = 1; i < runs.size(); ++i)
    differences.push_back(difference(runs.front(), runs[i]));
  const int decimals = decimals_of(runs);
  const auto days = [&](double value) { return fixed(value, decimals); };
  const auto more = [&](double value) { return signed_fixed(value, decimals); };
  const auto share = [](double value) { return fixed(100.0 * value, 1); };
  const auto count = [](double value) { return fixed(value, 0); };

  Table table{headers(runs.size())};
  using Cell = std::function<std::string(const TrainingRun&)>;
  using Difference = std::function<std::string(const RunDifference&)>;
  const auto add = [&](const std::string& what, const Cell& cell,
                       const Difference& between = nullptr) {
    std::vector<std::string> cells{what};
    for (std::size_t i = 0; i < runs.size(); ++i) {
      cells.push_back(cell(runs[i].run));
      if (i > 0) cells.push_back(between ? between(differences[i]) : "");
    }
    table.add_row(cells);
  };
  add(
      "days", [&](const TrainingRun& run) { return days(run.figures.days.mean); },
      [&](const RunDifference& of) { return more(of.drawn.mean); });
  add(
      "  in 9 of 10, by failures",
      [&](const TrainingRun& run) {
        return range_text(run.figures.days.low, run.figures.days.high, days);
      },
      [&](const RunDifference& of) { return range_text(of.drawn.low, of.drawn.high, more); });
  add(
      "  and by step times", [](const TrainingRun&) { return ""; },
      [&](const RunDifference& of) { return range_text(of.low(), of.high(), more); });
  add("  without interruption", [&](const TrainingRun& run) {
    return days(run.prepared.without_interruption().si() / 86400.0);
  });
  add("goodput, %", [&](const TrainingRun& run) { return share(run.figures.goodput.mean); });
  add("  in 9 of 10", [&](const TrainingRun& run) {
    return range_text(run.figures.goodput.low, run.figures.goodput.high, share);
  });
  add("ETTR, %", [&](const TrainingRun& run) { return share(run.figures.ettr.mean); });
  add("interruptions",
      [&](const TrainingRun& run) { return count(run.figures.interruptions.mean); });
  add("checkpoint, minutes", [](const TrainingRun& run) {
    const RunTier& tier = run.prepared.tiers().back();
    return fixed((run.prepared.step * static_cast<double>(tier.steps)).si() / 60.0, 1);
  });
  add("spares", [](const TrainingRun& run) { return grouped(run.spares.kept); });
  add("rent with spares", [](const TrainingRun& run) {
    const std::string rent = dollars_text(run.bill.rent_usd);
    return rent.empty() ? "-" : rent;
  });

  const RunQuestion& asked = runs.front().run.question;
  Document document;
  document.gap();
  document.heading(tokens_text(asked.tokens) + " tokens with " + profiles(runs));
  document.gap();
  document.table(table);
  document.gap();
  for (std::size_t i = 1; i < runs.size(); ++i)
    document.paragraph(verdict(runs.front(), differences[i], plan_label(i)));
  document.paragraph(grouped(asked.replicates) + " runs of each under the same failures, seed " +
                     std::to_string(asked.seed) + "\n");
  return document;
}

std::string compared_runs_json(const std::vector<ComparedRun>& runs) {
  Json list = Json::array();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const TrainingRun& run = runs[i].run;
    Json one{{"label", plan_label(i)},
             {"tokens", run.question.tokens},
             {"reliability", run.question.reliability.name},
             {"replicates", run.question.replicates},
             {"seed", run.question.seed},
             {"days", bare_range_json(run.figures.days)},
             {"days_without_interruption", run.prepared.without_interruption().si() / 86400.0},
             {"goodput", bare_range_json(run.figures.goodput)},
             {"ettr", bare_range_json(run.figures.ettr)},
             {"interruptions", bare_range_json(run.figures.interruptions)},
             {"spares", run.spares.kept},
             {"rent_usd", nullptr}};
    if (run.bill.rent_usd.known())
      one["rent_usd"] = {{"low", run.bill.rent_usd.low}, {"high", run.bill.rent_usd.high}};
    if (i > 0) {
      const RunDifference of = difference(runs.front(), runs[i]);
      one["days_longer"] = {{"from", plan_label(0)},
                            {"by_failures", bare_range_json(of.drawn)},
                            {"low", of.low()},
                            {"high", of.high()},
                            {"tie", of.is_tie()}};
    }
    list.push_back(std::move(one));
  }
  return list.dump();
}

}  // namespace orrery
