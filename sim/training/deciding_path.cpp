#include "sim/training/deciding_path.hpp"

#include <algorithm>
#include <cassert>

namespace orrery {
namespace {

// Ends that lie closer than this share of the step are simultaneous: the rest is rounding.
constexpr double simultaneous = 1e-9;

Seconds start_of(const Timeline& timeline, TaskId id) { return timeline.of(id).start.seconds(); }
Seconds finish_of(const Timeline& timeline, TaskId id) { return timeline.of(id).finish.seconds(); }

bool crosses_network(const Flow& flow, const Topology& topology) {
  return std::any_of(flow.way.begin(), flow.way.end(),
                     [&](const LinkUse& use) { return topology.link(use.link).is_nic(); });
}

// A latency, then flows, of which the slowest decides.
void add_transfer(const Task& task, const Label& label, Seconds length, const Topology& topology,
                  bool several_domains, TimeByPrice& sum) {
  if (label.what == Label::What::collective && label.group == GroupKind::expert) {
    sum.at(PriceKind::exchange, label.tag) += length;
    return;
  }
  const auto slowest = std::max_element(
      task.flows.begin(), task.flows.end(),
      [](const Flow& a, const Flow& b) { return a.bytes / a.rate < b.bytes / b.rate; });
  const bool network =
      task.flows.empty() ? several_domains  // The norm's sum over all ranks.
                         : std::any_of(task.flows.begin(), task.flows.end(),
                                       [&](const Flow& f) { return crosses_network(f, topology); });
  const Seconds latency = std::min(task.duration, length);
  sum.at(network ? PriceKind::network_latency : PriceKind::nvlink_latency, label.tag) += latency;
  if (slowest == task.flows.end()) return;
  sum.at(crosses_network(*slowest, topology) ? PriceKind::network_bytes : PriceKind::nvlink_bytes,
         label.tag) += length - latency;
}

// What a drawn-out pass's kernels consist of, or those of a whole contracted pass.
void add_pass(TaskId id, Seconds length, const Plan& plan, const TrainingStep& step,
              TimeByPrice& sum) {
  const Label& label = step.label(id);
  TimeByPrice parts;
  if (label.cost) {
    parts = label.cost->decisive;
  } else {
    const PassCost& pass = pass_of(plan, step, id);
    parts = pass.decisive.kernels();
    parts.add(pass.taken);
  }
  const Seconds whole = parts.total();
  assert(whole > Seconds{});
  sum.add(parts, length / whole);
}

}  // namespace

std::vector<TaskId> deciding_path(const TaskGraph& graph, const Timeline& timeline, Seconds end) {
  std::vector<TaskId> path;
  if (graph.size() == 0) return path;
  const Seconds tolerance = simultaneous * timeline.makespan.seconds();
  const auto ends_later = [&](TaskId one, TaskId other) {
    return finish_of(timeline, one) > finish_of(timeline, other) + tolerance;
  };
  const auto is_after_the_end = [&](TaskId id) {
    return finish_of(timeline, id) > end + tolerance;
  };
  TaskId last{0};
  for (int id = 1; id < graph.size(); ++id)
    if (ends_later(TaskId{id}, last) && !is_after_the_end(TaskId{id})) last = TaskId{id};
  for (int id = last.value; id >= 0;) {
    path.push_back(TaskId{id});
    const Seconds start = start_of(timeline, TaskId{id});
    int before = -1;
    graph.for_each_predecessor(TaskId{id}, [&](TaskId one) {
      if (finish_of(timeline, one) + tolerance >= start && (before < 0 || one.value < before))
        before = one.value;
    });
    id = before;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

std::vector<PathTask> path_through(const TaskGraph& graph, const Timeline& timeline,
                                   const StepWindow& window) {
  std::vector<PathTask> path;
  // From end to end: starts may lie a billionth of the step behind, and gaps would add up.
  Seconds reached = window.start;
  for (const TaskId id : deciding_path(graph, timeline, window.finish)) {
    const Seconds finish = finish_of(timeline, id);
    if (finish <= reached) continue;
    path.push_back({id, finish - reached});
    reached = finish;
  }
  return path;
}

TimeByPrice time_by_price(const Plan& plan, const TrainingStep& step,
                          const std::vector<PathTask>& path, const Topology& topology) {
  const Placement& placement = step.cast.placement();
  const bool several_domains = placement.domain(Rank{placement.ranks() - 1}) > 0;
  TimeByPrice sum;
  for (const auto& [id, length] : path) {
    const Task& task = step.graph.task(id);
    const Label& label = step.label(id);
    if (label.what == Label::What::optimizer)
      sum.at(PriceKind::memory, label.tag) += length;
    else if (label.kind == Label::Kind::compute)
      add_pass(id, length, plan, step, sum);
    else
      add_transfer(task, label, length, topology, several_domains, sum);
  }
  return sum;
}

StepRange range_of(const Scenario& scenario, const TrainingStep& step, Seconds length,
                   const std::vector<PathTask>& path, const Topology& topology,
                   const PriceErrors& errors) {
  return {length,
          time_by_price(scenario.plan, step, path, topology),
          errors,
          scenario.system.gpu.name,
          scenario.system.name,
          scenario.software.name,
          scenario.plan.dtype};
}

}  // namespace orrery
