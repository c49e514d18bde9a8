#include "sim/training/verdict.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/core/number_text.hpp"
#include "sim/kernels/kernel_time.hpp"

namespace orrery {
namespace {

std::string whole_percent(double share) { return fixed(100.0 * share, 0) + " %"; }

// Three significant digits: "843", "18.2", "1.57".
std::string rounded(Seconds time, const DisplayUnit& unit) {
  const double value = time.si() / unit.si;
  return fixed(value, value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2);
}

std::string fit(const MemoryReport& memory) {
  const double share =
      memory.stages[static_cast<std::size_t>(memory.fullest_stage())].peak() / memory.capacity;
  const char* const verdict = share > tolerated_share_of_memory ? "Does not fit"
                              : share > safe_share_of_memory    ? "May not fit"
                                                                : "Fits";
  return verdict + (" (" + whole_percent(share)) + " of memory).";
}

std::string step(const Result& result) {
  const DisplayUnit unit = time_unit(result.step_time);
  const std::string name{unit.name};
  std::string text = rounded(result.step_time, unit) + " " + name + " a step (90 % interval " +
                     rounded(result.range.low(), unit) + " to " +
                     rounded(result.range.high(), unit) + " " + name + ")";
  if (result.measured) {
    const double off = result.step_time / *result.measured - 1.0;
    text += ", " + fixed(100.0 * std::abs(off), 1) + " % " + (off < 0.0 ? "below" : "above") +
            " the measured " + fixed(*result.measured / Seconds{unit.si}, 2) + " " + name;
  }
  return text + ".";
}

struct Use {
  double share = 0.0;
  const char* clause;  // What becomes of that share of GPU time,
  const char* bound;   // and what the step is called if no other is as large.
};

std::string bottleneck(const Result& result) {
  const auto share = [&](const auto& part) {
    double sum = 0.0;
    for (const Breakdown& stage : result.stages) sum += part(stage) / stage.sum();
    return sum / static_cast<double>(result.stages.size());
  };
  const double compute = share([](const Breakdown& b) { return b.compute; });
  const double memory_bound = share([](const Breakdown& b) { return b.work.at(Work::streaming); });
  const bool mostly_streaming = memory_bound > 0.5 * compute;
  std::vector<Use> losses{
      {share([](const Breakdown& b) { return b.tp_exposed; }),
       "waits for tensor-parallel collectives", "Bound by tensor-parallel collectives"},
      {share([](const Breakdown& b) { return b.cp_exposed; }),
       "waits for context-parallel exchange", "Bound by context-parallel exchange"},
      {share([](const Breakdown& b) { return b.ep_exposed; }),
       "waits for the exchange of experts' tokens", "Bound by the exchange of experts' tokens"},
      {share([](const Breakdown& b) { return b.pp_bubble; }), "is pipeline bubble",
       "Bound by the pipeline bubble"},
      {share([](const Breakdown& b) { return b.pp_exposed; }),
       "waits for transfers between pipeline stages", "Bound by transfers between pipeline stages"},
      {share([](const Breakdown& b) { return b.dp_exposed; }),
       "waits for gradients and weights of data-parallel ranks",
       "Bound by data-parallel communication"},
      {share([](const Breakdown& b) { return b.imbalance; }), "waits for slower stages or ranks",
       "Bound by imbalance"},
      {share([](const Breakdown& b) { return b.optimizer; }), "is the optimizer's",
       "Bound by the optimizer"}};
  const Use& largest = *std::max_element(
      losses.begin(), losses.end(), [](const Use& a, const Use& b) { return a.share < b.share; });
  const std::string computes = whole_percent(compute) + " of GPU time computes";
  if (largest.share > compute)
    return std::string{largest.bound} + ": " + whole_percent(largest.share) + " of GPU time " +
           largest.clause + ", " + whole_percent(compute) + " computes.";
  std::string text =
      std::string{mostly_streaming ? "Bound by memory bandwidth: " : "Compute-bound: "} + computes;
  if (largest.share >= 0.005) text += ", " + whole_percent(largest.share) + " " + largest.clause;
  return text + ".";
}

std::string confidence(const Result& result) {
  const double assumed = result.provenance[static_cast<std::size_t>(Tag::default_value)];
  if (assumed <= 0.5) return "";
  return " Rough: " + whole_percent(assumed) +
         " of the time of kernels and collectives comes from assumed efficiencies.";
}

}  // namespace

std::string verdict(const Result& result) {
  return fit(result.memory) + " " + step(result) + " " + bottleneck(result) + confidence(result);
}

}  // namespace orrery
