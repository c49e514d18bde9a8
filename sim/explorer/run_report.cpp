#include <algorithm>
#include <array>
#include <cmath>

#include "sim/core/number_text.hpp"
#include "sim/core/quoting.hpp"
#include "sim/core/value_list.hpp"
#include "sim/explorer/reports.hpp"
#include "sim/reliability/reliability_text.hpp"
#include "sim/training/result_json.hpp"
#include "sim/training/training_text.hpp"

namespace orrery {
namespace {

// Places across a row: some ten minutes of a week.
constexpr std::size_t places = 1000;

std::string number(double value) { return fixed(value, 2); }

std::string colour(std::size_t time) { return "var(--t" + std::to_string(time) + ")"; }

std::string key_figures(const TrainingRun& run) {
  const RunFigures& of = run.figures;
  const auto range = [](const ChanceRange& one, double unit, int decimals) {
    return fixed(unit * one.low, decimals) + " .. " + fixed(unit * one.high, decimals) +
           " (90 % interval)" +
           (one.heavy_tailed() ? "; median, mean " + fixed(unit * one.mean, decimals) : "");
  };
  const int decimals = of.days.typical() < 10.0 ? 2 : 1;
  std::string html = "<dl class=\"figures\">\n";
  html += key_figure("run", fixed(of.days.typical(), decimals) + " days",
                     range(of.days, 1.0, decimals));
  html += key_figure("without interruption",
                     fixed(run.prepared.without_interruption().si() / 86400.0, decimals) + " days",
                     grouped(std::llround(run.prepared.steps())) + " steps");
  html += key_figure("goodput", percent(of.goodput.typical()), range(of.goodput, 100.0, 1));
  html += key_figure("interruptions",
                     fixed(of.interruptions.typical(), of.interruptions.typical() < 10.0),
                     range(of.interruptions, 1.0, 0));
  html +=
      key_figure("spares", grouped(run.spares.kept),
                 "of " + grouped(run.prepared.gpus_of_unit) + " GPUs each; more are in repair " +
                     percent(run.spares.short_of) + " of the time");
  const std::string rent = dollars_text(run.bill.rent_usd);
  if (!rent.empty()) html += key_figure("rent", rent, "with spares, waiting or not");
  const std::string energy = energy_text(run.bill.energy_kwh);
  if (!energy.empty())
    html +=
        key_figure("energy", energy, energy_text(run.bill.stopped_kwh) + " while the job stands");
  return html + "</dl>\n";
}

std::string legend(const std::array<bool, run_times>& there) {
  std::string html = "<ul class=\"legend\">\n";
  for (std::size_t i = 0; i < run_times; ++i)
    if (there[i])
      html += "<li><span style=\"background:" + colour(i) + "\"></span>" +
              escaped(words(static_cast<RunTime>(i))) + "</li>\n";
  return html + "</ul>\n";
}

// Days of a row: of a few, so that no run has more than some twenty rows.
int days_of_row(double days) {
  for (const int length : {1, 7, 28, 91, 364})
    if (days <= 20.0 * length) return length;
  return 3640;
}

// Shares of a place's time, by place and kind.
using Places = std::vector<std::array<double, run_times>>;

Places places_of(const std::vector<RunStretch>& log, double each) {
  Places shares(static_cast<std::size_t>(static_cast<double>(log.back().to) / each) + 1);
  for (const RunStretch& stretch : log) {
    auto at = static_cast<double>(stretch.from);
    const auto end = static_cast<double>(stretch.to);
    for (auto place = static_cast<std::size_t>(at / each); at < end; ++place) {
      const double until = std::min(end, static_cast<double>(place + 1) * each);
      shares[place][static_cast<std::size_t>(stretch.as)] += (until - at) / each;
      at = until;
    }
  }
  return shares;
}

// One row: times other than steps are stacked on the steps, as high as their share.
std::string row_of(const Places& shares, std::size_t first, std::size_t last) {
  std::string svg = "<svg viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\">";
  for (std::size_t kind = 0; kind < run_times; ++kind) {
    std::string path;
    for (std::size_t i = first; i < last;) {
      const auto top_of = [&](std::size_t place) {
        double below = 0.0;
        for (std::size_t other = 0; other <= kind; ++other) below += shares[place][other];
        return below;
      };
      std::size_t end = i + 1;
      while (end < last && shares[end] == shares[i]) ++end;
      const double top = top_of(i), height = shares[i][kind];
      if (height > 0.0)
        path += "M" + std::to_string(i - first) + " " + fixed(100.0 * (1.0 - top), 1) + "h" +
                std::to_string(end - i) + "v" + fixed(100.0 * height, 1) + "h-" +
                std::to_string(end - i) + "z";
      i = end;
    }
    if (!path.empty()) svg += "<path d=\"" + path + "\" style=\"fill:" + colour(kind) + "\"/>";
  }
  return svg + "</svg>";
}

std::string strip(const RunTotals& one) {
  const double days = static_cast<double>(one.total()) / micros_per_day;
  const int row_days = days_of_row(days);
  const Places shares = places_of(one.log, row_days * micros_per_day / static_cast<double>(places));
  std::array<bool, run_times> there{};
  for (const RunStretch& stretch : one.log) there[static_cast<std::size_t>(stretch.as)] = true;
  std::string html = legend(there);
  for (std::size_t first = 0, row = 0; first < shares.size(); first += places, ++row) {
    const std::string label =
        row_days == 7 ? "week " + std::to_string(row + 1)
                      : "day " + std::to_string(row * static_cast<std::size_t>(row_days) + 1);
    html += "<div class=\"days\"><span>" + label + "</span>" +
            row_of(shares, first, std::min(first + places, shares.size())) + "</div>\n";
  }
  html += "<div class=\"ticks\">";
  const int parts = row_days == 1 ? 4 : row_days == 7 ? 7 : 4;
  for (int i = 0; i <= parts; ++i)
    html += "<span>" +
            (row_days == 1 ? std::to_string(24 * i / parts) + " h"
                           : std::to_string(row_days * i / parts) + " d") +
            "</span>";
  return html + "</div>\n";
}

std::string strip_section(const TrainingRun& run, const RunTotals& one) {
  const double days = static_cast<double>(one.total()) / micros_per_day;
  return "<h2>One run, from its first day to its last</h2>\n<p class=\"note\">Of " +
         grouped(run.question.replicates) +
         " runs the one in the middle: " + fixed(days, days < 10.0 ? 2 : 1) + " days, " +
         grouped(one.all_interruptions()) + " interruptions. In each place of a row, some " +
         escaped(span_text(Seconds{days_of_row(days) * 86400.0 / static_cast<double>(places)})) +
         ", every colour is as high as its share of the time.</p>\n" + strip(one);
}

std::string histogram(const TrainingRun& run) {
  constexpr std::size_t bars = 40;
  const std::vector<double>& days = run.figures.days_of;
  const ChanceRange& range = run.figures.days;
  // A few runs may take several times as long as all others: the note counts them instead.
  const auto [first, last] = std::minmax_element(days.begin(), days.end());
  const double least = *first;
  const double most = std::min(*last, range.high + (range.high - range.low));
  const double width = std::max(1e-9, (most - least) / static_cast<double>(bars));
  std::array<int, bars> counts{};
  int beyond = 0;
  for (const double of : days)
    if (of > most)
      ++beyond;
    else
      ++counts[std::min(bars - 1, static_cast<std::size_t>((of - least) / width))];
  const int highest = *std::max_element(counts.begin(), counts.end());
  std::string html = "<h2>How many days</h2>\n<div class=\"histogram\">";
  for (std::size_t i = 0; i < bars; ++i) {
    const double from = least + static_cast<double>(i) * width, to = from + width;
    const double middle = 0.5 * (from + to);
    const bool inside = middle >= range.low && middle <= range.high;
    html += std::string{"<span"} + (inside ? " class=\"middle\"" : "") +
            " style=\"height:" + number(100.0 * counts[i] / highest) + "%\" title=\"" +
            grouped(counts[i]) + " runs of " + number(from) + " to " + number(to) +
            " days\"></span>";
  }
  html += "</div>\n<div class=\"ticks\">";
  // The digits tell one tick from the next.
  const int digits = std::clamp(static_cast<int>(std::ceil(1.0 - std::log10(10.0 * width))), 0, 4);
  for (int i = 0; i <= 4; ++i)
    html += "<span>" + fixed(least + (most - least) * i / 4.0, digits) + (i == 4 ? " days" : "") +
            "</span>";
  html += "</div>\n<p class=\"note\">Blue: nine runs in ten.";
  if (beyond > 0)
    html += " " + grouped(beyond) + (beyond == 1 ? " takes" : " take") + " longer, up to " +
            fixed(*last, 1) + " days.";
  return html + "</p>\n";
}

std::string lost_section(const TrainingRun& run) {
  std::vector<std::size_t> kinds;
  for (std::size_t i = 1; i < run_times; ++i)
    if (run.figures.shares[i] >= 0.0005) kinds.push_back(i);  // Smaller shares print as 0.
  std::stable_sort(kinds.begin(), kinds.end(), [&](std::size_t a, std::size_t b) {
    return run.figures.shares[a] > run.figures.shares[b];
  });
  if (kinds.empty()) return "";
  const double most = run.figures.shares[kinds.front()];
  std::string html = "<h2>What is lost to what</h2>\n";
  for (const std::size_t kind : kinds) {
    const double share = run.figures.shares[kind];
    html += "<div class=\"lost\"><span>" + escaped(words(static_cast<RunTime>(kind))) +
            "</span><span><b style=\"background:" + colour(kind) +
            ";width:" + number(50.0 * share / most) + "%\"></b>" + percent(share) + ", " +
            escaped(span_text(Seconds{share * run.figures.days.mean * 86400.0})) +
            "</span></div>\n";
  }
  return html;
}

std::string worth_section(const TrainingRun& run) {
  double low = 0.0, high = 0.0;
  for (const Improvement& one : run.worth) {
    low = std::min(low, one.days.low);
    high = std::max(high, one.days.high);
  }
  if (high <= low) return "";
  const auto at = [&](double days) { return number(100.0 * (days - low) / (high - low)); };
  std::string html =
      "<h2>What would be saved</h2>\n<div class=\"wide\"><table>\n<tr><th class=\"left\">by</th>"
      "<th>days</th><th>90 % interval</th><th class=\"left\"></th><th>ETTR</th>"
      "<th class=\"left\">rent</th></tr>\n";
  for (const Improvement& one : run.worth)
    html += "<tr><td class=\"left\">" + escaped(one.what) + "</td><td>" +
            number(one.days.typical()) + "</td><td>" + number(one.days.low) + " .. " +
            number(one.days.high) +
            "</td><td class=\"range\"><i><b style=\"left:" + at(one.days.low) +
            "%;width:" + number(100.0 * (one.days.high - one.days.low) / (high - low)) +
            "%\"></b><u style=\"left:" + at(one.days.typical()) + "%\"></u></i></td><td>" +
            (one.ettr < 0.0 ? "-" : "+") + fixed(100.0 * std::abs(one.ettr), 1) +
            "</td><td class=\"left\">" + escaped(saved_rent_text(one)) + "</td></tr>\n";
  return html +
         "</table></div>\n<p class=\"note\">Each alone, under the same failures at the same "
         "times; they do not add up.</p>\n";
}

std::string lines(const std::string& text) {
  return "<details><summary>figures</summary>\n" + preformatted(text) + "</details>\n";
}

}  // namespace

std::string run_report(const TrainingRun& run, const RunTotals& one, const ReportAbout& about) {
  const Scenario& scenario = run.prepared.scenario;
  return report_html(
      {.title = scenario.model.name + " on " + scenario.system.name + ", " +
                grouped(scenario.plan.gpus()) + " GPUs: " + tokens_text(run.question.tokens) +
                " tokens",
       .about = {joined(plan_items(scenario.plan)),
                 (run.question.faults ? "Faults, replayed, of " : "Failures of ") +
                     reliability_text(run.question.reliability) + ". Orrery " ORRERY_VERSION},
       .command = about.command,
       .body = key_figures(run) + strip_section(run, one) + histogram(run) + lost_section(run) +
               worth_section(run) + lines(training_run_text(run)) + inputs_place(),
       .result = training_run_json(run),
       .data = {{"inputs-data", inputs_json(scenario).dump()}},
       .timeline = ""});
}

}  // namespace orrery
