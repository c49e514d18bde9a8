#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/core/number_text.hpp"
#include "sim/kernels/kernel_time.hpp"
#include "sim/training/training_text.hpp"

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

struct Share {
  double of_time;
  std::string what;
};

// What the step waits for: the largest parts of its critical path.
std::string bottleneck(const Result& result) {
  const auto of_path = [&](StepPart part) {
    return result.critical.parts.sum(part) / result.step_time;
  };
  const double streaming = of_path(StepPart::streaming);
  double compute = streaming;
  for (const StepPart part :
       {StepPart::products, StepPart::expert_products, StepPart::attention, StepPart::slowed})
    compute += of_path(part);
  const std::vector<Share> others{
      {of_path(StepPart::host), "waiting for the host"},
      {of_path(StepPart::tensor), "tensor-parallel communication"},
      {of_path(StepPart::context), "context-parallel communication"},
      {of_path(StepPart::expert), "the exchange of experts' tokens"},
      {of_path(StepPart::pipeline), "transfers between pipeline stages"},
      {of_path(StepPart::data), "data-parallel communication"},
      {of_path(StepPart::optimizer) + of_path(StepPart::norm), "the optimizer"},
      {of_path(StepPart::waiting), "waiting for others"}};
  const Share& other = *std::ranges::max_element(others, {}, &Share::of_time);
  if (other.of_time > compute)
    return "Bound by " + other.what + ": " + whole_percent(other.of_time) +
           " of the critical path, " + whole_percent(compute) + " computes.";
  std::string text = streaming > 0.5 * compute ? "Bound by memory bandwidth" : "Compute-bound";
  text += ": " + whole_percent(compute) + " of the critical path computes";
  if (other.of_time >= 0.005) text += ", " + whole_percent(other.of_time) + " is " + other.what;
  return text + ".";
}

// GPUs that wait while the critical path computes elsewhere, as a mean over the stages.
std::string idle_gpus(const Result& result) {
  constexpr double worth_saying = 0.05;
  const auto of_time = [&](Seconds Breakdown::*part) {
    double sum = 0.0;
    for (const Breakdown& stage : result.stages) sum += stage.*part / stage.sum();
    return sum / static_cast<double>(result.stages.size());
  };
  const double bubble = of_time(&Breakdown::pp_bubble);
  const double imbalance = of_time(&Breakdown::imbalance);
  if (std::max(bubble, imbalance) < worth_saying) return "";
  return bubble > imbalance
             ? " The pipeline bubble takes " + whole_percent(bubble) + " of GPU time."
             : " Waiting for slower stages or ranks takes " + whole_percent(imbalance) +
                   " of GPU time.";
}

std::string confidence(const Result& result) {
  const double assumed = result.provenance[static_cast<std::size_t>(Tag::default_value)];
  if (assumed <= 0.5) return "";
  return " Rough: " + whole_percent(assumed) +
         " of the time of kernels and collectives comes from assumed efficiencies.";
}

}  // namespace

std::string verdict(const Result& result) {
  return fit(result.memory) + " " + step(result) + " " + bottleneck(result) + idle_gpus(result) +
         confidence(result);
}

}  // namespace orrery
