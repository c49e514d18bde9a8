#include "sim/search/compared_runs_text.hpp"

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "sim/core/number_text.hpp"
#include "sim/core/table.hpp"
#include "sim/reliability/reliability_text.hpp"
#include "sim/search/compare_text.hpp"
#include "sim/training/bill_text.hpp"

namespace orrery {
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
