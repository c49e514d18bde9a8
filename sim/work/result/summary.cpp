#include "sim/work/result/summary.hpp"

#include "sim/work/result/step_window.hpp"

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

std::vector<std::string> warnings(const MemoryReport& memory) {
  std::vector<std::string> list;
  if (memory.peak() > safe_share_of_memory * memory.capacity)
    list.push_back("stage " + std::to_string(memory.fullest_stage()) +
                   " may not fit: published peaks were up to 6 % above the predicted ones");
  return list;
}

}  // namespace

Result summarize(const Scenario& scenario, const MemoryReport& memory, const TrainingStep& step,
                 const Timeline& timeline, const Topology& topology, const RoutedLoads* loads) {
  const Plan& plan = scenario.plan;
  Result result;
  result.scenario = scenario;
  result.step_time = step_window(scenario, step, timeline).length();
  result.lower_bound = least_step_window(scenario, step).length();
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
  result.roles = static_cast<int>(step.cast.roles().size());
  const int role = critical_role(step, timeline);
  result.critical_stage = step.cast.roles()[static_cast<std::size_t>(role)].at.stage;
  result.breakdown = break_down(scenario, step, timeline, role);
  if (loads && scenario.model.experts) {
    result.routing = report_routing(scenario, *loads, step, role);
    // Where one rank stands for its expert group, its passes hold the slowest member's kernels.
    const bool own_kernels = !step.contracted && result.roles == plan.gpus();
    if (!own_kernels) {
      result.breakdown.compute -= result.routing->lost.compute;
      result.breakdown.imbalance += result.routing->lost.compute;
    }
  }
  result.provenance = provenance(plan, step, result.critical_stage);
  result.links = link_reports(step, result.step_time, topology);
  result.tasks = step.graph.size();
  result.contracted = step.contracted;
  result.engine = timeline.engine;
  result.warnings = warnings(memory);
  return result;
}

}  // namespace orrery
