#include "sim/calibration/fit_sustained.hpp"

#include <map>

#include "sim/core/number_text.hpp"
#include "sim/kernels/kernel_error.hpp"

namespace orrery {
namespace {

using calibration::Measurement;

std::string held_by(const Measurement& one) {
  if (one.series.empty() || !one.series.back().state.held_by) return "";
  return "; held by: " + calibration::held_by_text(*one.series.back().state.held_by);
}

// What a step pays is the table's time without the table's own falling clock, over `sustained`
// (KernelModel): so it is what makes that the time that the product keeps. The record's own first
// milliseconds would be another benchmark's clock than the table's.
double over_table(const Measurement& one, const GemmTime& table, double us) {
  const std::int64_t m = one.what.size("m"), n = one.what.size("n"), k = one.what.size("k");
  return table.without_cast(m, n, k).time.si() / table.throttle(m, n, k) / (1e-6 * us);
}

std::string count_text(std::size_t count, const std::string& dtype) {
  return std::to_string(count) + " " + dtype + (count == 1 ? " product" : " products");
}

}  // namespace

bool in_a_step(const Measurement& one) { return one.implementation.starts_with("in a step"); }

std::optional<SustainedFit> fit_sustained(
    const std::vector<Measurement>& all,
    const std::function<const GemmTime*(const std::string& dtype)>& table,
    std::vector<std::string>& findings, std::vector<std::string>& notes) {
  // As GPUs clock down for products, not for what the host or memory takes of short ones.
  constexpr double long_us = 50.0;
  std::map<std::string, std::vector<double>> without_pause, in_steps;
  std::size_t old = 0;
  for (const Measurement& one : all) {
    const bool sustained = one.what.kind == "sustained";
    if (!sustained &&
        !(one.what.kind == "gemm" && in_a_step(one) && one.warm && one.warm->median_us >= long_us))
      continue;
    if (sustained && (!one.figures.contains("sustained_us") || !one.figures.contains("burst_us"))) {
      ++old;
      continue;
    }
    const std::string& dtype = one.what.choice("dtype");
    const GemmTime* const time = table(dtype);
    if (!time) continue;
    if (!sustained) {
      in_steps[dtype == "fp8" ? "fp8" : "bf16"].push_back(
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
  // A step's own clock is what is wanted; products without pause are only like it. The table's
  // narrow formats are scaled by the same factor: theirs are findings alone where there is a
  // 16-bit one.
  for (const char* dtype : {"bf16", "fp8"})
    if (const auto some = in_steps.find(dtype); some != in_steps.end())
      return SustainedFit{
          middle(some->second, 0.5),
          "the table over " + count_text(some->second.size(), dtype) + " of a step's trace"};
  for (const char* dtype : {"bf16", "fp8"})
    if (const auto some = without_pause.find(dtype); some != without_pause.end())
      return SustainedFit{middle(some->second, 0.5), "the table over the last 5 s of " +
                                                         count_text(some->second.size(), dtype) +
                                                         " without pause"};
  return std::nullopt;
}

}  // namespace orrery
