#include "sim/search/best_plan.hpp"

#include <algorithm>
#include <utility>

#include "sim/search/best_first.hpp"

namespace orrery {

BestPlanFinder::BestPlanFinder(std::vector<const PlanSpace*> spaces, const PlanScorer& scorer,
                               Evenness least_even)
    : spaces_{std::move(spaces)}, scorer_{scorer} {
  for (std::size_t s = 0; s < spaces_.size(); ++s) {
    const auto add = [&](const PlanSpace::Choice& choice, const Scenario& scenario) {
      if (scorer_.passes.evenness(scenario) > least_even) return ++uneven_, true;
      // The bound falls with the shards of the optimizer, and the overlap is no part of it.
      Scenario most_sharded = scenario;
      most_sharded.plan.zero = std::max(1, scenario.plan.zero);
      groups_.push_back(scorer_.bounded(choice, most_sharded));
      groups_.back().space = static_cast<std::int32_t>(s);
      return true;
    };
    for (int part = 0; part < spaces_[s]->parts(); ++part)
      spaces_[s]->visit_groups(part, add, refusal_);
  }
  std::sort(groups_.begin(), groups_.end(),
            [](const Candidate& a, const Candidate& b) { return a.bound_before(b); });
}

BestPlanSearch BestPlanFinder::find(double most_memory) {
  BestPlanSearch result;
  result.groups = std::ssize(groups_);
  result.uneven = uneven_;
  result.none.refusal = refusal_;
  const auto space_of = [&](const Candidate& one) -> const PlanSpace& {
    return *spaces_[static_cast<std::size_t>(one.space)];
  };
  BestFirstSearch<Candidate> search{groups_, {BestList::Kind::top, 1}};
  search.run_groups(
      [&](const Candidate& group, const auto& known, const auto& add) {
        const PlanSpace& space = space_of(group);
        ++result.opened;
        const auto look_at = [&](const PlanSpace::Choice& choice, const Scenario& scenario) {
          Candidate candidate = scorer_.bounded(choice, scenario);
          candidate.space = group.space;
          if (!known.may_take(candidate)) return true;
          const auto memory = result.none.memory_if_it_fits(scenario, most_memory, scorer_.context,
                                                            [&] { return space.flags(choice); });
          if (!memory) return true;
          candidate.memory = *memory;
          add(candidate);
          return true;
        };
        PlanRefusal unused;
        space.visit_group(group.choice, look_at, unused);
      },
      [&](const Candidate& one, const auto& known) {
        const std::pair key{one.space, one.choice};
        if (const auto before = simulated_.find(key); before != simulated_.end())
          return std::optional{before->second};
        const auto simulated = scorer_.simulated(one, space_of(one).scenario(one.choice), known);
        if (!simulated) return simulated;
        ++result.simulated;
        simulated_.emplace(key, *simulated);
        return simulated;
      });
  if (!search.ranked().empty()) result.best = search.ranked().front();
  return result;
}

}  // namespace orrery
