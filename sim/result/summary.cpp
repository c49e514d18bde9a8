#include "sim/result/summary.hpp"

#include <algorithm>
#include <map>

#include "sim/graph/critical_path.hpp"

namespace orrery {
namespace {

// What contracted passes send inside their one task, by role and group.
std::vector<std::array<double, group_kinds>> contracted_bytes(const TrainingStep& step) {
  std::vector<std::array<double, group_kinds>> bytes(step.cast.roles().size());
  for (int i = 0; i < step.graph.size(); ++i) {
    const Task& task = step.graph.task(TaskId{i});
    if (!task.cost) continue;
    for (std::size_t group = 0; group < group_kinds; ++group)
      bytes[static_cast<std::size_t>(task.role)][group] += task.cost->scale_up_bytes[group].si();
  }
  return bytes;
}

std::vector<LinkReport> link_reports(const TrainingStep& step, const Timeline& timeline,
                                     const Topology& topology) {
  std::vector<double> bytes(static_cast<std::size_t>(topology.link_count()), 0.0);
  for (int i = 0; i < step.graph.size(); ++i)
    for (const Flow& flow : step.graph.task(TaskId{i}).flows)
      for (const LinkUse& use : flow.way)
        bytes[static_cast<std::size_t>(use.link.value)] += use.times * flow.bytes.si();
  const auto inside = contracted_bytes(step);
  for (std::size_t r = 0; r < inside.size(); ++r)
    for (std::size_t group = 0; group < group_kinds; ++group)
      for (const LinkUse& use : step.collective_ways[r][group])
        bytes[static_cast<std::size_t>(use.link.value)] += use.times * inside[r][group];

  std::map<std::string, LinkReport> busiest;
  for (int i = 0; i < topology.link_count(); ++i) {
    const Link& link = topology.link(LinkId{i});
    const double busy =
        bytes[static_cast<std::size_t>(i)] / (link.capacity.si() * timeline.makespan.si());
    LinkReport& report = busiest[cable_name(link.kind)];
    if (report.kind.empty() || busy > report.busy_fraction)
      report = {link.name, cable_name(link.kind), Bytes{bytes[static_cast<std::size_t>(i)]}, busy};
  }
  std::vector<LinkReport> reports;
  for (const auto& [kind, report] : busiest) reports.push_back(report);
  std::sort(reports.begin(), reports.end(), [](const LinkReport& a, const LinkReport& b) {
    return a.busy_fraction > b.busy_fraction;
  });
  return reports;
}

std::array<double, 3> provenance(const Plan& plan, const TrainingStep& step, int stage) {
  std::array<double, 3> shares{};
  for (int chunk = 0; chunk < plan.vpp; ++chunk) {
    const StageCost& cost = step.cost->stages[static_cast<std::size_t>(chunk * plan.pp + stage)];
    for (std::size_t tag = 0; tag < shares.size(); ++tag)
      shares[tag] += (cost.forward.by_tag[tag] + cost.backward.by_tag[tag]).si();
  }
  const double sum = shares[0] + shares[1] + shares[2];
  for (double& share : shares) share = sum > 0.0 ? share / sum : 0.0;
  return shares;
}

std::vector<std::string> warnings(const Scenario& scenario) {
  std::vector<std::string> list;
  if (std::find(scenario.model.layer_is_local.begin(), scenario.model.layer_is_local.end(), true) !=
          scenario.model.layer_is_local.end() &&
      scenario.plan.seq > scenario.model.window)
    list.push_back("local attention layers are priced as if they attended to the whole sequence");
  return list;
}

}  // namespace

Result summarize(const Scenario& scenario, const MemoryReport& memory, const TrainingStep& step,
                 const Timeline& timeline, const Topology& topology) {
  const Plan& plan = scenario.plan;
  Result result;
  result.scenario = scenario;
  result.step_time = timeline.makespan;
  result.lower_bound = critical_path(step.graph).length;
  const double seconds = timeline.makespan.si();
  const double gpus = plan.gpus();
  result.tokens_per_s = static_cast<double>(plan.gbs * plan.seq) / seconds;
  result.tokens_per_s_per_gpu = result.tokens_per_s / gpus;
  result.model_tflops_per_gpu = step.cost->model_flop_causal.si() / seconds / gpus / 1e12;
  result.model_tflops_per_gpu_full = step.cost->model_flop_full.si() / seconds / gpus / 1e12;
  const double peak = scenario.system.gpu.peak(plan.dtype, {}).si() / 1e12;
  result.mfu = result.model_tflops_per_gpu / peak;
  result.mfu_full = result.model_tflops_per_gpu_full / peak;
  result.memory = memory;
  const int role = critical_role(step, timeline);
  result.critical_stage = step.cast.roles()[static_cast<std::size_t>(role)].at.stage;
  result.breakdown = break_down(scenario, step, timeline, role);
  result.provenance = provenance(plan, step, result.critical_stage);
  result.links = link_reports(step, timeline, topology);
  result.roles = static_cast<int>(step.cast.roles().size());
  result.tasks = step.graph.size();
  result.contracted = step.contracted;
  result.warnings = warnings(scenario);
  return result;
}

}  // namespace orrery
