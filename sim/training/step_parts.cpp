#include "sim/training/step_parts.hpp"

#include <algorithm>
#include <cassert>
#include <map>
#include <utility>
#include <vector>

#include "sim/engine/task_graph.hpp"

namespace orrery {
namespace {

// Stage whose window the task belongs to; -1 for norms and transfers, which belong to none.
int stage_of(const TrainingStep& step, TaskId id) {
  const Label::What what = step.label(id).what;
  if (what == Label::What::norm || what == Label::What::transfer) return -1;
  const int owner = step.graph.task(id).owner;
  return step.classes.reps()[static_cast<std::size_t>(owner)].at.stage;
}

}  // namespace

StepWindow step_window(const Scenario& scenario, const TrainingStep& step,
                       const Timeline& timeline) {
  const Seconds end = timeline.makespan.seconds();
  if (!scenario.software.optimizer_post_validation) return {{}, end};
  std::vector<StepWindow> stages(static_cast<std::size_t>(scenario.plan.pp),
                                 {end, Seconds{}, true});
  for (int i = 0; i < step.graph.size(); ++i) {
    const TaskId id{i};
    const int of = stage_of(step, id);
    if (of < 0) continue;
    StepWindow& stage = stages[static_cast<std::size_t>(of)];
    if (step.label(id).what == Label::What::forward)
      stage.start = std::min(stage.start, timeline.of(id).start.seconds());
    stage.finish = std::max(stage.finish, timeline.of(id).finish.seconds());
  }
  return *std::max_element(
      stages.begin(), stages.end(),
      [](const StepWindow& a, const StepWindow& b) { return a.length() < b.length(); });
}

Seconds least_step_window(const Scenario& scenario, const TrainingStep& step) {
  if (!scenario.software.optimizer_post_validation) return critical_path(step.graph).length;
  Seconds longest;
  for (int stage = 0; stage < scenario.plan.pp; ++stage) {
    std::vector<TaskId> forward, all;
    for (int i = 0; i < step.graph.size(); ++i) {
      const TaskId id{i};
      if (stage_of(step, id) != stage) continue;
      all.push_back(id);
      if (step.label(id).what == Label::What::forward) forward.push_back(id);
    }
    const std::vector<Seconds> paths = longest_paths(step.graph, forward);
    for (TaskId id : all) longest = std::max(longest, paths[static_cast<std::size_t>(id.value)]);
  }
  return longest;
}

std::string name(StepPart part, StepPhase phase) {
  return phase == StepPhase::once ? name(part) : name(part) + "_" + name(phase);
}

Seconds TimeByPart::sum(StepPart part) const {
  Seconds sum;
  for (const Seconds time : parts_[index(part)]) sum += time;
  return sum;
}

Seconds TimeByPart::total() const {
  Seconds total;
  for (std::size_t part = 0; part < step_part_count; ++part)
    total += sum(static_cast<StepPart>(part));
  return total;
}

void TimeByPart::add(const TimeByWork& work, StepPhase phase, double share) {
  for (std::size_t kind = 0; kind < kinds_of_work; ++kind)
    parts_[kind][index(phase)] += share * work.at(static_cast<Work>(kind));
}

void TimeByPart::add(const TimeByPart& more, double share) {
  for (std::size_t part = 0; part < step_part_count; ++part)
    for (std::size_t phase = 0; phase < step_phases; ++phase)
      parts_[part][phase] += share * more.parts_[part][phase];
}

ExposedInPass exposed_in_pass(const PassCost& cost, double speed) {
  return {cost.exposed(GroupKind::tensor, speed), cost.exposed(GroupKind::context, speed),
          cost.exposed(GroupKind::expert, speed) + cost.exposed(GroupKind::expert_tensor, speed)};
}

ExposedInPass ExposedInPass::adding_up_to(Seconds sum, const Plan& plan) const {
  ExposedInPass all = *this;
  (plan.tp > 1   ? all.tensor
   : plan.cp > 1 ? all.context
   : plan.ep > 1 ? all.expert
                 : all.tensor) += sum - tensor - context - expert;
  return all;
}

namespace {

StepPart part_of(GroupKind group) {
  switch (group) {
    case GroupKind::tensor:
      return StepPart::tensor;
    case GroupKind::context:
      return StepPart::context;
    default:
      return StepPart::expert;
  }
}

StepPhase phase_of(bool backward) { return backward ? StepPhase::backward : StepPhase::forward; }

// Sums up what the tasks of a path do.
class Sum {
 public:
  Sum(const Plan& plan, const TrainingStep& step) : plan_{plan}, step_{step} {}

  void add(TaskId id, Seconds length) {
    const Label& label = step_.label(id);
    switch (label.what) {
      case Label::What::forward:
      case Label::What::backward:
      case Label::What::weight_gradient: {
        const TimeByPart& parts =
            label.cost || step_.graph.task(id).fused ? of_pass(id) : of_kernels(id);
        assert(parts.total() > Seconds{});
        parts_.add(parts, length / parts.total());
        return;
      }
      case Label::What::collective:
        return add(part_of(label.group), phase_of(label.backward), length);
      case Label::What::transfer:
        return add(StepPart::pipeline, phase_of(label.backward), length);
      case Label::What::gradients:
      case Label::What::weights:
        return add(StepPart::data, StepPhase::once, length);
      case Label::What::optimizer:
        return add(StepPart::optimizer, StepPhase::once, length);
      case Label::What::norm:
        return add(StepPart::norm, StepPhase::once, length);
    }
  }
  const TimeByPart& parts() const { return parts_; }

 private:
  void add(StepPart part, StepPhase phase, Seconds length) { parts_.at(part, phase) += length; }

  static void add_kernels(const PassCost& pass, bool forward, double share, TimeByPart& parts) {
    parts.add(pass.work, phase_of(!forward), share);
    parts.add(pass.recomputed, StepPhase::recomputed, share);
    parts.add(pass.recomputed, phase_of(!forward), -share);
  }

  // Parts of all kernels of the pass; a stretch of it does not know its own.
  const TimeByPart& of_kernels(TaskId id) {
    const PassCost& pass = pass_of(plan_, step_, id);
    const auto [known, fresh] = kernels_.try_emplace(&pass);
    if (fresh) add_kernels(pass, step_.label(id).what == Label::What::forward, 1.0, known->second);
    return known->second;
  }

  // Parts of a task that is a pass, or two that run together.
  const TimeByPart& of_pass(TaskId id) {
    const Label& label = step_.label(id);
    const int owner = step_.graph.task(id).owner;
    const PassCost& cost = label.cost ? *label.cost : pass_of(plan_, step_, id);
    const auto [known, fresh] = passes_.try_emplace({&cost, owner});
    TimeByPart& parts = known->second;
    if (!fresh) return parts;
    const bool forward = label.what == Label::What::forward;
    const RankClass& rep = step_.classes.reps()[static_cast<std::size_t>(owner)];
    const double share = 1.0 / rep.speed;
    if (label.with_microbatch >= 0) {
      const PassCost& backward = overlapped_pass(plan_, step_, id);
      parts.add(cost.work, StepPhase::forward, share);  // Includes what both lose to contention.
      parts.add(backward.work, StepPhase::forward, -share);
      add_kernels(backward, false, share, parts);
    } else {
      add_kernels(cost, forward, share, parts);
    }
    const Seconds exposed = cost.time(rep.pace) - share * cost.compute;
    const ExposedInPass waits = exposed_in_pass(cost, rep.speed).adding_up_to(exposed, plan_);
    parts.at(StepPart::tensor, phase_of(!forward)) += waits.tensor;
    parts.at(StepPart::context, phase_of(!forward)) += waits.context;
    parts.at(StepPart::expert, phase_of(!forward)) += waits.expert;
    return parts;
  }

  const Plan& plan_;
  const TrainingStep& step_;
  TimeByPart parts_;
  std::map<const PassCost*, TimeByPart> kernels_;
  std::map<std::pair<const PassCost*, int>, TimeByPart> passes_;
};

}  // namespace

CriticalParts critical_parts(const Plan& plan, const TrainingStep& step,
                             const std::vector<PathTask>& path) {
  Sum sum{plan, step};
  CriticalParts critical;
  critical.by_stage.resize(static_cast<std::size_t>(plan.pp));
  for (const auto& [id, length] : path) {
    const int owner = step.graph.task(id).owner;
    const int stage = step.classes.reps()[static_cast<std::size_t>(owner)].at.stage;
    sum.add(id, length);
    critical.by_stage[static_cast<std::size_t>(stage)] += length;
  }
  critical.parts = sum.parts();
  return critical;
}

namespace {

// Ends closer than this share of the step are simultaneous up to rounding.
constexpr double simultaneous = 1e-9;

Seconds start_of(const Timeline& timeline, TaskId id) { return timeline.of(id).start.seconds(); }
Seconds finish_of(const Timeline& timeline, TaskId id) { return timeline.of(id).finish.seconds(); }

bool crosses_network(const Flow& flow, const Topology& topology) {
  return std::any_of(flow.route.begin(), flow.route.end(),
                     [&](const LinkUse& use) { return topology.link(use.link).is_nic(); });
}

// A transfer takes its latency, then the time of its slowest flow.
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
      task.flows.empty() ? several_domains  // The norm is summed over all ranks.
                         : std::any_of(task.flows.begin(), task.flows.end(),
                                       [&](const Flow& f) { return crosses_network(f, topology); });
  const Seconds latency = std::min(task.duration, length);
  sum.at(network ? PriceKind::network_latency : PriceKind::nvlink_latency, label.tag) += latency;
  if (slowest == task.flows.end()) return;
  sum.at(crosses_network(*slowest, topology) ? PriceKind::network_bytes : PriceKind::nvlink_bytes,
         label.tag) += length - latency;
}

// Adds the kernels of an expanded pass, or all of a contracted one.
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
  // Lengths run from end to end: starts may lag by a billionth of the step, and gaps would add up.
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
  const Placement& placement = step.classes.placement();
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
          scenario.plan.dtype,
          scenario.plan.software_stands_in};
}

}  // namespace orrery
