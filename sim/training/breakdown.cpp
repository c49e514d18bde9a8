#include <algorithm>
#include <map>
#include <utility>

#include "sim/collectives/collective_flows.hpp"
#include "sim/training/result.hpp"
#include "sim/training/step_parts.hpp"

namespace orrery {
namespace {

// Causes of waiting. Overlapping waits are attributed to the first cause in this order.
enum Cause { data, transfer, context, expert, tensor, norm, causes };

struct Interval {
  Seconds start;
  Seconds finish;
};

// Disjoint intervals, ascending.
std::vector<Interval> merged(const std::vector<Interval>& given) {
  // A rank's own tasks are in order already.
  const auto earlier = [](const Interval& a, const Interval& b) { return a.start < b.start; };
  std::vector<Interval> sorted;
  const bool in_order = std::is_sorted(given.begin(), given.end(), earlier);
  if (!in_order) {
    sorted = given;
    std::sort(sorted.begin(), sorted.end(), earlier);
  }
  const std::vector<Interval>& intervals = in_order ? given : sorted;
  std::vector<Interval> result;
  result.reserve(intervals.size());
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

Cause cause_of(GroupKind kind) {
  return kind == GroupKind::tensor ? tensor : kind == GroupKind::context ? context : expert;
}

// Sorts the tasks of a step into the kernels and waits of some representatives.
class Collector {
 public:
  Collector(const Scenario& scenario, const TrainingStep& step, const Timeline& timeline,
            const std::vector<int>& reps)
      : scenario_{scenario}, step_{step}, timeline_{timeline}, own_(reps.size()) {
    chosen_.resize(step.classes.reps().size(), -1);
    led_by_.resize(group_kinds * step.classes.reps().size());
    for (std::size_t i = 0; i < reps.size(); ++i) {
      const int rep = reps[i];
      chosen_[static_cast<std::size_t>(rep)] = static_cast<int>(i);
      const Coordinates at = step.classes.reps()[static_cast<std::size_t>(rep)].at;
      for (GroupKind kind : all_group_kinds) {
        const int leader = reps_in(step.classes, step.classes.placement().group(kind, at)).front();
        led_by_[leader_index(kind, leader)].push_back(i);
      }
    }
  }

  std::vector<OwnTasks> collect() {
    for (int i = 0; i < step_.graph.size(); ++i) look_at(TaskId{i});
    return std::move(own_);
  }

 private:
  static std::size_t leader_index(GroupKind kind, int leader) {
    return group_kinds * static_cast<std::size_t>(leader) + static_cast<std::size_t>(kind);
  }
  OwnTasks* of(int rep) {
    const int index = rep < 0 ? -1 : chosen_[static_cast<std::size_t>(rep)];
    return index < 0 ? nullptr : &own_[static_cast<std::size_t>(index)];
  }
  void wait(OwnTasks* own, Cause cause, const Interval& when) {
    if (own) own->waits[cause].push_back(when);
  }
  void all_wait(GroupKind group, int leader, Cause cause, const Interval& when) {
    for (const std::size_t index : led_by_[leader_index(group, leader)])
      own_[index].waits[cause].push_back(when);
  }

  void look_at(TaskId id) {
    const int owner = step_.graph.task(id).owner;
    const Label& label = step_.label(id);
    const Span& span = timeline_.of(id);
    const Interval when{span.start.seconds(), span.finish.seconds()};
    switch (label.what) {
      case Label::What::forward:
      case Label::What::backward:
      case Label::What::weight_gradient:
        if (OwnTasks* own = of(owner); own && label.kind != Label::Kind::join)
          add_pass(id, when, *own);
        break;
      case Label::What::optimizer:
        if (OwnTasks* own = of(owner)) {
          own->kernels.push_back(when);
          own->busy.optimizer += when.finish - when.start;
        }
        break;
      case Label::What::collective:
        all_wait(label.group, owner, cause_of(label.group), when);
        break;
      case Label::What::transfer:
        wait(of(label.to_rep), transfer, when);
        if (label.to_rep != owner && !scenario_.software.overlap_pp)
          wait(of(owner), transfer, when);
        break;
      case Label::What::gradients:
      case Label::What::weights:
        // A tied embedding's gradient has two ends; all others have a group.
        if (label.to_rep >= 0) {
          wait(of(owner), data, when);
          if (label.to_rep != owner) wait(of(label.to_rep), data, when);
        } else {
          all_wait(label.group, owner, data, when);
        }
        break;
      case Label::What::norm:
        for (OwnTasks& own : own_) own.waits[norm].push_back(when);
        break;
    }
  }

  void add_pass(TaskId id, const Interval& when, OwnTasks& own) {
    const Label& label = step_.label(id);
    const Seconds length = when.finish - when.start;
    own.kernels.push_back(when);
    if (!label.cost) {
      own.busy.compute += length;
      const TimeByWork& work = pass_of(scenario_.plan, step_, id).work;
      if (length > Seconds{}) own.busy.work.add(work, length / work.total());
      return;
    }
    const RankClass& rep =
        step_.classes.reps()[static_cast<std::size_t>(step_.graph.task(id).owner)];
    const Seconds kernels = label.cost->compute / rep.speed;
    own.busy.compute += kernels;
    own.busy.work.add(label.cost->work, 1.0 / rep.speed);
    const auto [known, fresh] = exposed_.try_emplace({label.cost, rep.speed});
    if (fresh) known->second = exposed_in_pass(*label.cost, rep.speed);
    const ExposedInPass waits = known->second.adding_up_to(length - kernels, scenario_.plan);
    own.busy.tp_exposed += waits.tensor;
    own.busy.cp_exposed += waits.context;
    own.busy.ep_exposed += waits.expert;
  }

  const Scenario& scenario_;
  const TrainingStep& step_;
  const Timeline& timeline_;
  std::vector<int> chosen_;                       // Index in own_ of each representative, or -1.
  std::vector<std::vector<std::size_t>> led_by_;  // Keyed by group kind and first member.
  std::map<std::pair<const PassCost*, double>, ExposedInPass> exposed_;
  std::vector<OwnTasks> own_;
};

// Idle time of the schedule in a pipeline of equal stages, which drains behind each of its rounds.
Seconds ideal_bubble(const Scenario& scenario, const TrainingStep& step, int stage) {
  Seconds microbatch;
  const Plan& plan = scenario.plan;
  for (int chunk = 0; chunk < plan.chunks(); ++chunk) {
    const StageCost& cost =
        step.cost->stages[static_cast<std::size_t>(plan.virtual_stage(stage, chunk))];
    microbatch += cost.forward.time() + cost.backward.time();
  }
  const int rounds = plan.microbatches / plan.microbatches_of_round();
  return rounds * (plan.pp - 1) * microbatch / plan.chunks();
}

Breakdown break_down(const Scenario& scenario, const TrainingStep& step, const OwnTasks& own,
                     const StepWindow& window, int stage) {
  const std::vector<Interval> kernels = merged(own.kernels);
  const Seconds begin = window.of_one_stage ? kernels.front().start : Seconds{};
  std::vector<Interval> idle = without({{begin, begin + window.length()}}, kernels);
  Breakdown result = own.busy;
  Seconds waited[causes];
  Seconds unexplained = length(idle);
  for (int cause = 0; cause < causes; ++cause) {
    if (own.waits[cause].empty()) continue;
    idle = without(idle, merged(own.waits[cause]));
    const Seconds rest = length(idle);
    waited[cause] = unexplained - rest;
    unexplained = rest;
  }
  result.dp_exposed = waited[data];
  result.pp_exposed = waited[transfer];
  result.cp_exposed += waited[context];
  result.ep_exposed += waited[expert];
  result.tp_exposed += waited[tensor];
  result.other = waited[norm];
  result.pp_bubble = std::min(unexplained, ideal_bubble(scenario, step, stage));
  result.imbalance = unexplained - result.pp_bubble;
  return result;
}

}  // namespace

std::vector<Breakdown> break_down(const Scenario& scenario, const TrainingStep& step,
                                  const Timeline& timeline, const std::vector<int>& reps) {
  const std::vector<OwnTasks> own = Collector{scenario, step, timeline, reps}.collect();
  const StepWindow window = step_window(scenario, step, timeline);
  std::vector<Breakdown> breakdowns;
  for (std::size_t i = 0; i < reps.size(); ++i) {
    const int stage = step.classes.reps()[static_cast<std::size_t>(reps[i])].at.stage;
    breakdowns.push_back(break_down(scenario, step, own[i], window, stage));
  }
  return breakdowns;
}

std::vector<int> longest_computing_reps(const TrainingStep& step, const Timeline& timeline,
                                        int stages) {
  std::vector<Seconds> busy(step.classes.reps().size());
  for (int i = 0; i < step.graph.size(); ++i) {
    const Task& task = step.graph.task(TaskId{i});
    if (task.stream != Stream::compute || step.label(TaskId{i}).kind != Label::Kind::compute)
      continue;
    busy[static_cast<std::size_t>(task.owner)] += timeline.of(TaskId{i}).length();
  }
  std::vector<int> longest(static_cast<std::size_t>(stages), -1);
  for (std::size_t rep = 0; rep < busy.size(); ++rep) {
    int& of_stage = longest[static_cast<std::size_t>(step.classes.reps()[rep].at.stage)];
    if (of_stage < 0 || busy[rep] > busy[static_cast<std::size_t>(of_stage)])
      of_stage = static_cast<int>(rep);
  }
  return longest;
}

}  // namespace orrery
