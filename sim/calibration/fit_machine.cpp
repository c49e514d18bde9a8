#include "sim/calibration/fit_machine.hpp"

#include <algorithm>
#include <cstdio>
#include <map>

#include "sim/core/number_text.hpp"
#include "sim/kernels/kernel_error.hpp"

namespace orrery {
namespace {

using calibration::Measurement;

// A positive figure, or nullopt.
std::optional<double> figure(const Measurement& one, const std::string& name) {
  const auto found = one.figures.find(name);
  if (found == one.figures.end() || !(found->second > 0.0)) return std::nullopt;
  return found->second;
}

struct Busy {
  double share, slowdown;

  double lost() const { return 1.0 - 1.0 / slowdown; }
};

void add_collectives(const std::vector<Measurement>& measurements, int multiprocessors,
                     OverlapFit& fit) {
  std::map<std::string, std::vector<double>> hindered;
  for (const Measurement& one : measurements) {
    if (one.what.kind != "collective_overlap") continue;
    const auto product = figure(one, "product_slowdown_ratio"),
               own = figure(one, "collective_slowdown_ratio");
    if (!product || !own) continue;
    const std::string& collective = one.what.choice("collective");
    char text[160];
    std::snprintf(text, sizeof text,
                  "%s of %lld ranks: concurrent products take %.1f %% longer, as with %.1f busy "
                  "multiprocessors",
                  collective.c_str(), static_cast<long long>(one.what.size("ranks")),
                  100.0 * (*product - 1.0),
                  (1.0 - 1.0 / *product) * multiprocessors / fit.share.value_or(1.0));
    fit.findings.emplace_back(text);
    hindered[collective + " concurrent with products, as if alone"].push_back(1.0 / *own - 1.0);
  }
  for (auto& [what, some] : hindered) fit.checks.push_back({what, std::move(some)});
}

}  // namespace

OverlapFit fit_overlap(const std::vector<Measurement>& measurements, int multiprocessors) {
  constexpr std::size_t fewest = 3;
  std::vector<Busy> busy;
  std::vector<double> copies;
  for (const Measurement& one : measurements) {
    if (one.what.kind != "overlap") continue;
    const auto slowdown = figure(one, "slowdown_ratio");
    if (!slowdown) continue;
    if (one.what.choice("beside") == "copy")
      copies.push_back(1.0 / *slowdown - 1.0);
    else if (one.what.size("busy") > 0)
      busy.push_back({static_cast<double>(one.what.size("busy")) / multiprocessors, *slowdown});
  }
  OverlapFit fit;
  fit.busy_cases = busy.size();
  double product = 0.0, square = 0.0;
  for (const Busy& one : busy) {
    product += one.share * one.lost();
    square += one.share * one.share;
  }
  if (busy.size() >= fewest) fit.share = product / square;
  std::vector<double> errors;
  for (const Busy& one : busy) {
    const double kept = std::max(1.0 - fit.share.value_or(1.0) * one.share, 0.5);
    errors.push_back(1.0 / (kept * one.slowdown) - 1.0);
  }
  if (!errors.empty())
    fit.checks.push_back({"product with busy multiprocessors", std::move(errors)});
  if (!copies.empty())
    fit.checks.push_back({"product concurrent with a copy, as if alone", std::move(copies)});
  add_collectives(measurements, multiprocessors, fit);
  return fit;
}

namespace {

using calibration::Measurement;

std::string held_by(const Measurement& one) {
  if (one.series.empty() || !one.series.back().state.held_by) return "";
  return "; held by: " + calibration::held_by_text(*one.series.back().state.held_by);
}

// A step's time is the table's without the table's own falling clock, over `sustained`
// (KernelModel): the factor turns that into the sustained time of the product. The record's own
// first milliseconds would have another benchmark's clock than the table's.
double over_table(const Measurement& one, const GemmTime& table, double us) {
  const std::int64_t m = one.what.size("m"), n = one.what.size("n"), k = one.what.size("k");
  return table.without_cast(m, n, k).time.si() / table.throttle(m, n, k) / (1e-6 * us);
}

std::string count_text(std::size_t count, const std::string& dtype) {
  return std::to_string(count) + " " + dtype + (count == 1 ? " product" : " products");
}

}  // namespace

bool is_in_a_step(const Measurement& one) { return one.implementation.starts_with("in a step"); }

std::optional<SustainedFit> fit_sustained(
    const std::vector<Measurement>& all,
    const std::function<const GemmTime*(const std::string& dtype)>& table,
    std::vector<std::string>& findings, std::vector<std::string>& notes) {
  // GPUs lower their clock for products, not for the launch or memory time of short ones.
  constexpr double long_us = 50.0;
  std::map<std::string, std::vector<double>> without_pause, in_steps;
  std::size_t old = 0;
  for (const Measurement& one : all) {
    const bool sustained = one.what.kind == "sustained";
    if (!sustained && !(one.what.kind == "gemm" && is_in_a_step(one) && one.warm &&
                        one.warm->median_us >= long_us))
      continue;
    if (sustained && (!one.figures.contains("sustained_us") || !one.figures.contains("burst_us"))) {
      ++old;
      continue;
    }
    const std::string& dtype = one.what.choice("dtype");
    const GemmTime* const time = table(dtype);
    if (!time) continue;
    if (!sustained) {
      in_steps[name(measured_as(*format_named(dtype, FormatUse::products)))].push_back(
          over_table(one, *time, one.warm->median_us));
      continue;
    }
    const double kept_us = one.figures.at("sustained_us");
    without_pause[dtype].push_back(over_table(one, *time, kept_us));
    findings.push_back("without pause, " + one.what.id().substr(std::string{"sustained "}.size()) +
                       ": the last 5 s at " + percent(one.figures.at("burst_us") / kept_us) +
                       " of the first 20 ms' rate, at " + percent(without_pause[dtype].back()) +
                       " of the table's" + held_by(one));
  }
  if (old)
    notes.push_back(std::to_string(old) +
                    " products without pause, by an orrery-gpu that compared whole seconds: "
                    "power limits act within the first");
  // The clock of a step is the best measure; products without pause only approximate it. The
  // table's narrow formats are scaled by the same factor: theirs are findings alone where there is
  // a 16-bit one.
  for (const std::string& dtype : format_names(FormatUse::weights))
    if (const auto some = in_steps.find(dtype); some != in_steps.end())
      return SustainedFit{
          middle(some->second, 0.5),
          "the table over " + count_text(some->second.size(), dtype) + " of a step's trace"};
  for (const std::string& dtype : format_names(FormatUse::weights))
    if (const auto some = without_pause.find(dtype); some != without_pause.end())
      return SustainedFit{middle(some->second, 0.5), "the table over the last 5 s of " +
                                                         count_text(some->second.size(), dtype) +
                                                         " without pause"};
  return std::nullopt;
}

}  // namespace orrery
