#include "sim/search/best_plan.hpp"

#include <algorithm>
#include <cmath>
#include <queue>
#include <tuple>
#include <utility>

#include "sim/layers/memory.hpp"
#include "sim/search/leaders.hpp"
#include "sim/training/estimate.hpp"

namespace orrery {
namespace {

bool is_after(const Candidate& a, const Candidate& b) {
  return std::tie(a.bound, a.bound_s, a.space, a.choice) >
         std::tie(b.bound, b.bound_s, b.space, b.choice);
}

}  // namespace

BestPlanFinder::BestPlanFinder(std::vector<const PlanSpace*> spaces, const Objective& objective,
                               const Economics* economics, EstimateContext& context,
                               KnownPassTimes& passes, bool leave_uneven)
    : spaces_{std::move(spaces)},
      objective_{objective},
      economics_{economics},
      context_{context},
      passes_{passes} {
  for (std::size_t s = 0; s < spaces_.size(); ++s) {
    const PlanSpace& space = *spaces_[s];
    const auto index = static_cast<std::int32_t>(s);
    const auto add = [&](const PlanSpace::Choice& choice, const Scenario& scenario) {
      if (leave_uneven && !passes_.lies_evenly(scenario)) return ++uneven_, true;
      // The bound falls with the shards of the optimizer, and the overlap is no part of it.
      Scenario most_sharded = scenario;
      most_sharded.plan.zero = std::max(1, scenario.plan.zero);
      const Candidate candidate = candidate_of(index, choice, most_sharded);
      groups_.push_back({choice, index, candidate.bound_s, candidate.bound});
      return true;
    };
    for (int part = 0; part < space.parts(); ++part) space.visit_groups(part, add, refusal_);
  }
  std::sort(groups_.begin(), groups_.end(), [](const Group& a, const Group& b) {
    return std::tie(a.bound, a.bound_s, a.space, a.choice) <
           std::tie(b.bound, b.bound_s, b.space, b.choice);
  });
}

Candidate BestPlanFinder::candidate_of(std::int32_t space, const PlanSpace::Choice& choice,
                                       const Scenario& scenario) const {
  Candidate candidate;
  candidate.choice = choice;
  candidate.space = candidate.number = space;
  const Seconds bound = passes_.bound(scenario);
  candidate.bound_s = bound.si();
  candidate.bound = objective_.score(scenario, bound, economics_);
  return candidate;
}

BestPlanSearch BestPlanFinder::find(double most_memory) {
  BestPlanSearch result;
  result.groups = static_cast<std::int64_t>(groups_.size());
  result.uneven = uneven_;
  result.refusal = refusal_;
  Leaders leaders{Leaders::Kind::top, 1};
  std::priority_queue<Candidate, std::vector<Candidate>, decltype(&is_after)> open{is_after};
  const auto open_group = [&](const Group& group) {
    const PlanSpace& space = *spaces_[static_cast<std::size_t>(group.space)];
    ++result.opened;
    const auto look_at = [&](const PlanSpace::Choice& choice, const Scenario& scenario) {
      Candidate candidate = candidate_of(group.space, choice, scenario);
      if (!leaders.may_take(candidate)) return true;
      MemoryReport memory = least_memory_of(scenario);
      const Bytes most = most_memory * memory.capacity;
      const auto smallest = [&] {
        return result.smallest.empty() || memory.peak().si() < result.least_memory;
      };
      if (memory.peak() <= most || smallest())
        memory = memory_of(scenario, *context_.loads(scenario));
      candidate.memory = memory.peak() / memory.capacity;
      if (memory.peak() <= most) {
        open.push(candidate);
      } else if (smallest()) {
        result.least_memory = memory.peak().si();
        result.smallest = space.flags(choice);
      }
      return true;
    };
    PlanRefusal unused;
    space.visit_group(group.choice, look_at, unused);
  };
  for (std::size_t next = 0;;) {
    Candidate nearest;
    const bool groups_left = next < groups_.size();
    if (!groups_left && open.empty()) break;
    if (groups_left) nearest.bound = groups_[next].bound, nearest.bound_s = groups_[next].bound_s;
    if (groups_left && (open.empty() || nearest.bound <= open.top().bound)) {
      if (leaders.may_take(nearest)) open_group(groups_[next]);
      ++next;
      continue;
    }
    const Candidate candidate = open.top();
    open.pop();
    if (!leaders.may_take(candidate)) continue;
    const Scenario scenario =
        spaces_[static_cast<std::size_t>(candidate.space)]->scenario(candidate.choice);
    if (!leaders.may_take(sharpened(candidate, scenario, objective_, economics_, passes_)))
      continue;
    const Seconds time = step_time(scenario, context_);
    leaders.offer(candidate, time, objective_.score(scenario, time, economics_));
    ++result.simulated;
  }
  if (!leaders.ranked().empty()) {
    const Leader& leader = leaders.ranked().front();
    result.best = BestPlan{leader.candidate, leader.time, leader.score};
  }
  return result;
}

}  // namespace orrery
