#include <algorithm>
#include <array>
#include <cmath>

#include "sim/core/number_text.hpp"
#include "sim/core/quoting.hpp"
#include "sim/explorer/reports.hpp"

namespace orrery {
namespace {

constexpr double width = 900.0;             // Of a drawing, in its own units.
constexpr std::size_t most_points = 1'000;  // Of the curve of running samples.

// One of the palette's colours for each phase (run.css); what the driver does has one together.
std::string colour_of(RlPhase phase) {
  constexpr std::array colours{4, 7, 0, 2, 1, 8, 5, 3, 6, 0};
  return "var(--t" + std::to_string(colours[static_cast<std::size_t>(phase)]) + ")";
}

std::string figures_of_step(const RlStep& step, const RlBill& bill) {
  const auto seconds = [](double value) { return fixed(value, 1) + " s"; };
  const double time = step.time.si();
  std::string html = "<dl class=\"figures\">\n";
  html += key_figure("step", seconds(time),
                     fixed(time * std::exp(-rl_step_error), 1) + " .. " +
                         seconds(time * std::exp(rl_step_error)) +
                         ", in which 87 % of published steps lie");
  html += key_figure("samples a second", fixed(step.samples_per_s(), 2),
                     fixed(step.tokens_per_s_per_gpu(), 0) + " tokens a second and GPU");
  if (step.overlap) {
    const RlOverlap& both = *step.overlap;
    const bool engine_is_slower = both.engine > both.trainer;
    html += key_figure(engine_is_slower ? "the trainer waits" : "the engine waits",
                       percent(1.0 - (engine_is_slower ? both.trainer : both.engine) / step.time),
                       "of the step; answers are " + fixed(both.mean_age, 1) + " steps old");
  } else {
    html += key_figure("lost to the longest answers", percent(step.rollout.tail()),
                       "of the rollout, for its last tenth of answers");
  }
  html += key_figure("memory", gigabytes_text(std::max(step.memory.training, step.memory.rollout)),
                     "of " + gigabytes_text(step.memory.capacity) + ": training " +
                         gigabytes_text(step.memory.training) + ", rollout " +
                         gigabytes_text(step.memory.rollout));
  if (bill.usd_per_thousand.known())
    html += key_figure(
        "rent of 1,000 samples", "$" + fixed(bill.usd_per_thousand.midpoint(), 2),
        "$" + fixed(bill.usd_per_thousand.low, 2) + " .. " + fixed(bill.usd_per_thousand.high, 2));
  return html + "</dl>\n";
}

// A rectangle of a row, between two moments as shares of its time.
std::string part_of_row(double from, double to, RlPhase phase, Seconds time) {
  return "<path d=\"M" + fixed(width * from, 2) + " 0H" + fixed(width * to, 2) + "V100H" +
         fixed(width * from, 2) + "z\" style=\"fill:" + colour_of(phase) + "\"><title>" +
         escaped(phase_text(phase)) + ", " + fixed(time.si(), 1) + " s</title></path>";
}

std::string row(const std::string& label, const std::string& parts, const std::string& style) {
  return "<div class=\"days\"><span>" + escaped(label) +
         "</span><svg viewBox=\"0 0 900 100\" preserveAspectRatio=\"none\"" + style + ">" + parts +
         "</svg></div>\n";
}

class StepDrawing {
 public:
  explicit StepDrawing(const RlStep& step) : step_{step}, times_{pool_times(step)} {
    for (const PoolTime& one : times_) shown_ = std::max(shown_, one.begin + one.time);
  }

  std::string html() {
    std::string trainer, engine, curve;
    for (const PoolTime& one : times_) {
      if (!one.phase) continue;
      if (std::find(drawn_.begin(), drawn_.end(), *one.phase) == drawn_.end())
        drawn_.push_back(*one.phase);
      (one.of_engine ? engine : trainer) +=
          part_of_row(one.begin / shown_, (one.begin + one.time) / shown_, *one.phase, one.time);
      if (*one.phase == RlPhase::generation && !step_.overlap) curve = samples_from(one.begin);
    }
    std::string html = "<h2>What each GPU does</h2>\n" + legend();
    html += row(engine.empty() ? "all GPUs" : "training", trainer, "");
    if (!engine.empty()) html += row("rollout", engine, "");
    if (!curve.empty()) html += row("samples", curve, " style=\"height:80px\"");
    html += "<div class=\"ticks\">";
    for (int i = 0; i <= 4; ++i)
      html += "<span>" + fixed(shown_.si() * i / 4.0, 1) + (i == 4 ? " s" : "") + "</span>";
    return html + "</div>\n<p class=\"note\">" + escaped(note()) + "</p>\n";
  }

 private:
  // The number of samples in the engine: from all of a step down to the longest one.
  std::string samples_from(Seconds begin) {
    const auto samples = running_samples(step_.rollout, most_points);
    for (const auto& [at, running] : samples) most_ = std::max(most_, running);
    std::string path = "<path d=\"M" + fixed(width * (begin / shown_), 2) + " 100";
    for (const auto& [at, running] : samples)
      path += "H" + fixed(width * ((begin + at) / shown_), 2) + "V" +
              fixed(100.0 * (1.0 - static_cast<double>(running) / static_cast<double>(most_)), 1);
    return path + "z\" style=\"fill:" + colour_of(RlPhase::generation) + "\"/>";
  }

  std::string legend() const {
    std::string html = "<ul class=\"legend\">\n";
    for (const RlPhase phase : drawn_)
      html += "<li><span style=\"background:" + colour_of(phase) + "\"></span>" +
              escaped(phase_text(phase)) + "</li>\n";
    return html + "</ul>\n";
  }

  std::string note() const {
    std::string text;
    if (step_.overlap)
      text = "Three equal steps of a loop that generates while it trains.";
    else
      text = "Samples: those that run, " + grouped(most_) + " at most.";
    return text + (step_.job.colocated ? "" : " Blank: the pool waits.");
  }

  const RlStep& step_;
  std::vector<PoolTime> times_;
  Seconds shown_;
  std::vector<RlPhase> drawn_;
  std::int64_t most_ = 0;
};

std::string changes_of(const RlStep& step, const std::vector<RlChange>& changes) {
  if (changes.empty()) return "";
  std::string html =
      "<h2>What a change brings</h2>\n<div class=\"wide\"><table>\n<tr><th class=\"left\">one "
      "change</th><th>seconds</th><th class=\"left\">options</th></tr>\n";
  for (const RlChange& one : changes) {
    if (!one.refused.empty()) continue;
    html += "<tr><td class=\"left\">" + escaped(one.words) + "</td><td>" + fixed(one.step.si(), 1) +
            "</td><td class=\"left\">" + escaped(one.options) + "</td></tr>\n";
  }
  return html + "</table></div>\n<p class=\"note\">Each alone; the step takes " +
         fixed(step.time.si(), 1) + " s without.</p>\n";
}

}  // namespace

std::string post_report(const RlStep& step, const RlBill& bill,
                        const std::vector<RlChange>& changes, const ReportAbout& about) {
  const RlJob& job = step.job;
  return report_html({.title = job.model.name + " on " + plural(job.gpus, "GPU") + " of " +
                               job.system.name + ": a step of " + name(job.request.algorithm),
                      .about = {plural(job.request.prompts, "prompt") + " x " +
                                plural(job.request.samples, "sample") + ", " + job.framework.title +
                                ", " + job.rollout.engine.name + ". Orrery " ORRERY_VERSION},
                      .command = about.command,
                      .body = figures_of_step(step, bill) + StepDrawing{step}.html() +
                              changes_of(step, changes) + "<h2>In figures</h2>\n" +
                              preformatted(rl_step_text(step, bill)),
                      .result = rl_step_json(step, bill, changes),
                      .data = {},
                      .timeline = ""});
}

}  // namespace orrery
