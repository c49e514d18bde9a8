#include "sim/training/result.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <utility>

#include "sim/core/number_text.hpp"
#include "sim/training/step_parts.hpp"
#include "sim/training/waiting.hpp"

namespace orrery {
namespace {

std::array<double, 3> provenance(const Plan& plan, const TrainingStep& step, int stage) {
  std::array<double, 3> shares{};
  for (int chunk = 0; chunk < plan.chunks(); ++chunk) {
    const StageCost& cost =
        step.cost->stages[static_cast<std::size_t>(plan.virtual_stage(stage, chunk))];
    for (std::size_t tag = 0; tag < shares.size(); ++tag)
      shares[tag] += (cost.forward.by_tag[tag] + cost.backward.by_tag[tag]).si();
  }
  const double sum = shares[0] + shares[1] + shares[2];
  for (double& share : shares) share = sum > 0.0 ? share / sum : 0.0;
  return shares;
}

// The engine rounds task lengths to ticks, and SimGrid to nanoseconds; the bound is not rounded.
Seconds lower_bound(const Scenario& scenario, const TrainingStep& step, Seconds step_time) {
  const Seconds bound = least_step_window(scenario, step);
  assert(bound <= (1.0 + 1e-6) * step_time);
  return std::min(bound, step_time);
}

std::vector<std::string> warnings(const Scenario& scenario, const MemoryReport& memory) {
  std::vector<std::string> list;
  if (!scenario.why_software.empty()) list.push_back(scenario.why_software);
  if (scenario.guessed_sequence)
    list.push_back("sequences of " + std::to_string(scenario.plan.seq) +
                   " tokens are assumed, as the model does not say what it was trained with; "
                   "--seq N sets another");
  const double share = memory.peak() / memory.capacity;
  if (!memory.fits()) {
    list.push_back("stage " + std::to_string(memory.fullest_stage()) + " needs " +
                   percent(share - 1.0) + " more memory than a GPU has: " +
                   (share > tolerated_share_of_memory
                        ? "the plan cannot run as it is"
                        : "predicted peaks were up to 10 % above published ones, so that it may "
                          "run or not"));
  }
  if (memory.fits() && share > safe_share_of_memory)
    list.push_back("stage " + std::to_string(memory.fullest_stage()) +
                   " may not fit: published peaks were up to 6 % above the predicted ones");
  return list;
}

// Time by which the slowest rank of an expert group computes longer is waiting to the others.
void wait_for_slower_experts(Seconds lost, Breakdown& rank) {
  if (lost <= Seconds{}) return;
  rank.work.add(rank.work, -(lost / rank.compute));
  rank.compute -= lost;
  rank.imbalance += lost;
}

}  // namespace

Result summarize(const Scenario& scenario, const MemoryReport& memory, const TrainingStep& step,
                 const Timeline& timeline, const Topology& topology, const PriceErrors& errors,
                 const RoutedLoads& loads) {
  const Plan& plan = scenario.plan;
  Result result;
  result.scenario = scenario;
  const StepWindow window = step_window(scenario, step, timeline);
  const std::vector<PathTask> path = path_through(step.graph, timeline, window);
  const Seconds waiting = waiting_for_others(scenario, window.length());
  result.step_time = window.length() + waiting;
  result.range = range_of(scenario, step, result.step_time, path, topology, errors);
  result.range.path.at(PriceKind::host, Tag::default_value) += waiting;
  result.lower_bound = lower_bound(scenario, step, result.step_time);
  const double seconds = result.step_time.si();
  const double gpus = plan.gpus();
  result.tokens_per_s = static_cast<double>(plan.gbs * plan.seq) / seconds;
  result.tokens_per_s_per_gpu = result.tokens_per_s / gpus;
  result.model_tflops_per_gpu = step.cost->model_flop_causal.si() / seconds / gpus / 1e12;
  result.model_tflops_per_gpu_full = step.cost->model_flop_full.si() / seconds / gpus / 1e12;
  const double peak = scenario.system.gpu.peak(plan.dtype, {}).si() / 1e12;
  result.mfu = result.model_tflops_per_gpu / peak;
  result.mfu_full = result.model_tflops_per_gpu_full / peak;
  result.memory = memory;
  result.kinds = layers_by_kind(scenario, *step.cost);
  result.reps = static_cast<int>(step.classes.reps().size());
  result.critical = critical_parts(plan, step, path);
  result.critical.parts.at(StepPart::waiting, StepPhase::once) = waiting;
  const std::vector<int> reps = longest_computing_reps(step, timeline, plan.pp);
  result.stages = break_down(scenario, step, timeline, reps);
  for (Breakdown& stage : result.stages) stage.waiting = waiting;
  // A rank that represents its expert group has the slowest member's kernels in its passes.
  const bool own_kernels = !step.contracted && result.reps == plan.gpus();
  if (scenario.model.experts && !own_kernels)
    for (std::size_t stage = 0; stage < reps.size(); ++stage)
      wait_for_slower_experts(lost_to_routing(plan, step, reps[stage]).compute,
                              result.stages[stage]);
  const auto less_busy = [](const Breakdown& a, const Breakdown& b) { return a.busy() < b.busy(); };
  const auto place = [&](auto stage) { return static_cast<int>(stage - result.stages.begin()); };
  result.busiest_stage =
      place(std::max_element(result.stages.begin(), result.stages.end(), less_busy));
  result.idlest_stage =
      place(std::min_element(result.stages.begin(), result.stages.end(), less_busy));
  const int rep = reps[static_cast<std::size_t>(result.busiest_stage)];
  if (scenario.model.experts) result.routing = report_routing(scenario, loads, step, rep);
  result.provenance = provenance(plan, step, result.busiest_stage);
  result.links = link_reports(step, result.step_time, topology);
  result.tasks = step.graph.size();
  result.contracted = step.contracted;
  result.simulator = timeline.simulator;
  result.warnings = warnings(scenario, memory);
  return result;
}

namespace {

// Sums have thousands of parts, each rounded.
constexpr double rounding = 1e-6;

void require(bool sound, const char* figure, double value, const char* why) {
  if (sound) return;
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  throw std::logic_error{std::string{"the answer is not sound: "} + figure + " is " + text + ", " +
                         why};
}

void require_positive(const char* figure, double value) {
  require(std::isfinite(value) && value > 0.0, figure, value, "and has to be more than nothing");
}

void require_at_least_nothing(const char* figure, double value, double tolerance = 0.0) {
  require(std::isfinite(value) && value >= -tolerance, figure, value, "and cannot be negative");
}

void require_equal(const char* figure, double value, double other, const char* why) {
  require(std::abs(value - other) <= rounding * std::abs(other), figure, value, why);
}

void require_sound(const Breakdown& breakdown, Seconds step) {
  const double tolerance = rounding * step.si();
  for (const auto& [figure, part] : std::initializer_list<std::pair<const char*, Seconds>>{
           {"the time of kernels", breakdown.compute},
           {"exposed tensor-parallel time", breakdown.tp_exposed},
           {"exposed context-parallel time", breakdown.cp_exposed},
           {"exposed expert-parallel time", breakdown.ep_exposed},
           {"the pipeline's bubble", breakdown.pp_bubble},
           {"exposed pipeline time", breakdown.pp_exposed},
           {"exposed data-parallel time", breakdown.dp_exposed},
           {"the optimizer's time", breakdown.optimizer},
           {"imbalance", breakdown.imbalance},
           {"other time", breakdown.other},
           {"waiting for others", breakdown.waiting}})
    require_at_least_nothing(figure, part.si(), tolerance);
  require_equal("the sum of the breakdown", breakdown.sum().si(), step.si(),
                "which is not the step");
}

void require_sound(const MemoryReport& memory) {
  require_positive("the GPU's memory", memory.capacity.si());
  for (const StageMemory& stage : memory.stages)
    for (const auto& [figure, part] : std::initializer_list<std::pair<const char*, Bytes>>{
             {"memory of weights", stage.weights},
             {"memory of gradients", stage.gradients},
             {"memory of the optimizer", stage.optimizer},
             {"memory of activations", stage.activations},
             {"other memory", stage.other}})
      require_at_least_nothing(figure, part.si());
  require_positive("peak memory", memory.peak().si());
}

}  // namespace

void require_sound(Seconds step_time) { require_positive("the step time", step_time.si()); }

void require_sound(const Result& result) {
  const double step = result.step_time.si();
  require_sound(result.step_time);
  require_positive("the lower bound", result.lower_bound.si());
  require(result.lower_bound <= result.step_time, "the lower bound", result.lower_bound.si(),
          "more than the step");
  require_positive("the short end of the range", result.range.low().si());
  require(result.range.low() <= result.step_time, "the short end of the range",
          result.range.low().si(), "more than the step");
  require(std::isfinite(result.range.high().si()) && result.range.high() >= result.step_time,
          "the long end of the range", result.range.high().si(), "less than the step");
  require_equal("the sum of the range's prices", result.range.path.total().si(), step,
                "which is not the step");
  require_equal("the sum of the critical path's parts", result.critical.parts.total().si(), step,
                "which is not the step");
  for (const Breakdown& breakdown : result.stages) require_sound(breakdown, result.step_time);
  require_positive("tokens/s", result.tokens_per_s);
  require_positive("tokens/s of a GPU", result.tokens_per_s_per_gpu);
  require_positive("MFU", result.mfu);
  require(result.mfu <= 1.0, "MFU", result.mfu, "more than the GPU can do");
  require_positive("MFU with full attention", result.mfu_full);
  double shares = 0.0;
  for (const double share : result.provenance) {
    require_at_least_nothing("a share of the prices", share);
    shares += share;
  }
  require_equal("the sum of the prices' shares", shares, 1.0, "and not 1");
  require_sound(result.memory);
}

}  // namespace orrery
