#include "sim/result/summary.hpp"

#include <algorithm>
#include <map>

#include "sim/graph/critical_path.hpp"

namespace orrery {
namespace {

// Adds what contracted passes send inside their one task to the bytes of links.
void add_contracted(const TrainingStep& step, std::vector<double>& bytes) {
  const auto add = [&](const Way& way, Bytes sent) {
    for (const LinkUse& use : way)
      bytes[static_cast<std::size_t>(use.link.value)] += use.times * sent.si();
  };
  for (int i = 0; i < step.graph.size(); ++i) {
    const Task& task = step.graph.task(TaskId{i});
    if (!task.cost) continue;
    const auto& ways = step.collective_ways[static_cast<std::size_t>(task.role)];
    for (std::size_t group = 0; group < group_kinds; ++group) {
      add(ways[group].scale_up, task.cost->scale_up_bytes[group]);
      add(ways[group].network, task.cost->network_bytes[group]);
    }
  }
}

std::vector<LinkReport> link_reports(const TrainingStep& step, const Timeline& timeline,
                                     const Topology& topology) {
  std::vector<double> bytes(static_cast<std::size_t>(topology.link_count()), 0.0);
  for (int i = 0; i < step.graph.size(); ++i)
    for (const Flow& flow : step.graph.task(TaskId{i}).flows)
      for (const LinkUse& use : flow.way)
        bytes[static_cast<std::size_t>(use.link.value)] += use.times * flow.bytes.si();
  add_contracted(step, bytes);

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
                 const Timeline& timeline, const Topology& topology, const RoutedLoads* loads) {
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
  result.links = link_reports(step, timeline, topology);
  result.tasks = step.graph.size();
  result.contracted = step.contracted;
  result.warnings = warnings(scenario);
  return result;
}

}  // namespace orrery
