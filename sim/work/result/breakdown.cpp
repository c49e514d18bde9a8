#include <algorithm>
#include <array>

#include "sim/engine/graph/group_flows.hpp"
#include "sim/work/result/step_window.hpp"
#include "sim/work/result/summary.hpp"

namespace orrery {
namespace {

// What a rank waits for, in the order in which overlapping causes are named.
enum Cause { data, transfer, context, expert, tensor, norm, causes };

struct Interval {
  Seconds start;
  Seconds finish;
};

// Disjoint intervals, ascending.
std::vector<Interval> merged(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.start < b.start; });
  std::vector<Interval> result;
  for (const Interval& next : intervals) {
    if (next.finish <= next.start) continue;
    if (!result.empty() && next.start <= result.back().finish)
      result.back().finish = std::max(result.back().finish, next.finish);
    else
      result.push_back(next);
  }
  return result;
}

// The parts of `whole` that `taken` (disjoint, ascending) does not cover.
std::vector<Interval> without(const std::vector<Interval>& whole,
                              const std::vector<Interval>& taken) {
  std::vector<Interval> rest;
  std::size_t first = 0;
  for (Interval interval : whole) {
    while (first < taken.size() && taken[first].finish <= interval.start) ++first;
    for (std::size_t i = first; i < taken.size() && taken[i].start < interval.finish; ++i) {
      if (taken[i].start > interval.start) rest.push_back({interval.start, taken[i].start});
      interval.start = std::max(interval.start, taken[i].finish);
    }
    if (interval.start < interval.finish) rest.push_back(interval);
  }
  return rest;
}

Seconds length(const std::vector<Interval>& intervals) {
  Seconds sum;
  for (const Interval& interval : intervals) sum += interval.finish - interval.start;
  return sum;
}

struct OwnTasks {
  std::vector<Interval> kernels;
  std::vector<Interval> waits[causes];
  Breakdown busy;
};

// `exposed`: what a contracted pass takes beyond its kernels. A slower mate's lead is named after
// the group in which it is waited for first.
void add_exposed(const Plan& plan, const PassCost& cost, double speed, Seconds exposed,
                 Breakdown& busy) {
  const Seconds tensor_part = cost.exposed(GroupKind::tensor, speed);
  const Seconds context_part = cost.exposed(GroupKind::context, speed);
  const Seconds expert_part =
      cost.exposed(GroupKind::expert, speed) + cost.exposed(GroupKind::expert_tensor, speed);
  busy.tp_exposed += tensor_part;
  busy.cp_exposed += context_part;
  busy.ep_exposed += expert_part;
  const Seconds lead = exposed - tensor_part - context_part - expert_part;
  (plan.tp > 1   ? busy.tp_exposed
   : plan.cp > 1 ? busy.cp_exposed
   : plan.ep > 1 ? busy.ep_exposed
                 : busy.tp_exposed) += lead;
}

Cause cause_of(GroupKind kind) {
  return kind == GroupKind::tensor ? tensor : kind == GroupKind::context ? context : expert;
}

OwnTasks collect(const Scenario& scenario, const TrainingStep& step, const Timeline& timeline,
                 int role) {
  const Placement& placement = step.cast.placement();
  const Coordinates at = step.cast.roles()[static_cast<std::size_t>(role)].at;
  std::array<int, group_kinds> leaders{};
  for (GroupKind kind : all_group_kinds)
    leaders[static_cast<std::size_t>(kind)] =
        roles_in(step.cast, placement.group(kind, at)).front();
  const auto leads = [&](int owner, GroupKind group) {
    return owner == leaders[static_cast<std::size_t>(group)];
  };

  const double speed = step.cast.roles()[static_cast<std::size_t>(role)].speed;
  OwnTasks own;
  for (int i = 0; i < step.graph.size(); ++i) {
    const int owner = step.graph.task(TaskId{i}).owner;
    const Label& label = step.label(TaskId{i});
    const Span& span = timeline.of(TaskId{i});
    const Interval interval{span.start.seconds(), span.finish.seconds()};
    switch (label.what) {
      case Label::What::forward:
      case Label::What::backward:
      case Label::What::weight_gradient: {
        if (owner != role || label.kind == Label::Kind::join) break;
        own.kernels.push_back(interval);
        const Seconds kernels =
            label.cost ? label.cost->compute / speed : interval.finish - interval.start;
        own.busy.compute += kernels;
        if (label.cost)
          add_exposed(scenario.plan, *label.cost, speed, interval.finish - interval.start - kernels,
                      own.busy);
        break;
      }
      case Label::What::optimizer:
        if (owner != role) break;
        own.kernels.push_back(interval);
        own.busy.optimizer += interval.finish - interval.start;
        break;
      case Label::What::collective:
        if (leads(owner, label.group)) own.waits[cause_of(label.group)].push_back(interval);
        break;
      case Label::What::transfer:
        if (label.to_role == role || (owner == role && !scenario.software.overlap_pp))
          own.waits[transfer].push_back(interval);
        break;
      case Label::What::gradients:
      case Label::What::weights:
        // A tied embedding's gradient has two ends, all others a group.
        if (label.to_role >= 0 ? owner == role || label.to_role == role : leads(owner, label.group))
          own.waits[data].push_back(interval);
        break;
      case Label::What::norm:
        own.waits[norm].push_back(interval);
        break;
    }
  }
  return own;
}

// Idle time that the schedule itself costs a rank whose stages are all alike.
Seconds ideal_bubble(const Scenario& scenario, const TrainingStep& step, int stage) {
  Seconds microbatch;
  const Plan& plan = scenario.plan;
  for (int chunk = 0; chunk < plan.chunks(); ++chunk) {
    const StageCost& cost =
        step.cost->stages[static_cast<std::size_t>(plan.virtual_stage(stage, chunk))];
    microbatch += cost.forward.time() + cost.backward.time();
  }
  return (plan.pp - 1) * microbatch / plan.chunks();
}

}  // namespace

Breakdown break_down(const Scenario& scenario, const TrainingStep& step, const Timeline& timeline,
                     int role) {
  const OwnTasks own = collect(scenario, step, timeline, role);
  const std::vector<Interval> kernels = merged(own.kernels);
  const StepWindow window = step_window(scenario, step, timeline);
  const Seconds begin = window.of_one_stage ? kernels.front().start : Seconds{};
  std::vector<Interval> idle = without({{begin, begin + window.length()}}, kernels);
  Breakdown result = own.busy;
  Seconds waited[causes];
  for (int cause = 0; cause < causes; ++cause) {
    const std::vector<Interval> rest = without(idle, merged(own.waits[cause]));
    waited[cause] = length(idle) - length(rest);
    idle = rest;
  }
  result.dp_exposed = waited[data];
  result.pp_exposed = waited[transfer];
  result.cp_exposed += waited[context];
  result.ep_exposed += waited[expert];
  result.tp_exposed += waited[tensor];
  result.other = waited[norm];
  const int stage = step.cast.roles()[static_cast<std::size_t>(role)].at.stage;
  const Seconds unexplained = length(idle);
  result.pp_bubble = std::min(unexplained, ideal_bubble(scenario, step, stage));
  result.imbalance = unexplained - result.pp_bubble;
  return result;
}

int critical_role(const TrainingStep& step, const Timeline& timeline) {
  std::vector<Seconds> busy(step.cast.roles().size());
  for (int i = 0; i < step.graph.size(); ++i) {
    const Task& task = step.graph.task(TaskId{i});
    if (task.stream != Stream::compute || step.label(TaskId{i}).kind != Label::Kind::compute)
      continue;
    busy[static_cast<std::size_t>(task.owner)] += timeline.of(TaskId{i}).length();
  }
  return static_cast<int>(std::max_element(busy.begin(), busy.end()) - busy.begin());
}

}  // namespace orrery
