#include "sim/search/search.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>

#include "sim/core/number_text.hpp"
#include "sim/core/progress.hpp"
#include "sim/core/worker_pool.hpp"
#include "sim/search/candidate.hpp"
#include "sim/search/explored.hpp"
#include "sim/search/leaders.hpp"
#include "sim/training/bill.hpp"

namespace orrery {
namespace {

bool needs_prices(const SearchRequest& request) {
  return request.goal == Goal::cost_per_token || request.goal == Goal::energy_per_token ||
         request.tokens || request.deadline;
}

// Where a bill has gaps, a score must not.
void require_prices(Goal goal, const Economics& economics, const std::string& gpu) {
  std::vector<std::string> missing;
  std::string list;
  for (const std::string& key : unknown_prices(economics)) {
    const std::vector<std::string>& needed = prices_of(goal);
    if (std::find(needed.begin(), needed.end(), key) == needed.end()) continue;
    missing.push_back(key);
    list += (list.empty() ? "" : ", ") + key;
  }
  if (!missing.empty())
    fail_input({"--objective", ""},
               goal_names()[static_cast<std::size_t>(goal)] +
                   " needs what is not known of the GPU '" + gpu + "': " + list,
               price_remedy(missing));
}

}  // namespace

SearchGround::SearchGround(const SearchRequest& request) {
  for (std::size_t s = 0; s < request.systems.size(); ++s) {
    const System& system = request.systems[s];
    contexts.push_back(std::make_unique<EstimateContext>(system));
    economics.emplace_back();
    if (needs_prices(request)) {
      economics.back() = read_economics(system.gpu.name, request.economics);
      require_prices(request.goal, *economics.back(), system.gpu.name);
    }
    for (int gpus : request.gpus)
      for (std::int64_t gbs : request.gbs) {
        spaces.emplace_back(request.model, system, gpus, gbs, request.fixed);
        system_of.push_back(static_cast<int>(s));
      }
  }
}

namespace {

SimulatedPlan simulated(const SearchGround& ground, const Candidate& candidate,
                        const Scenario& scenario, Seconds step) {
  const Plan& plan = scenario.plan;
  const double tokens = static_cast<double>(plan.gbs) * static_cast<double>(plan.seq);
  return {candidate.number,
          plan.gpus(),
          plan.gbs,
          ground.space(candidate).flags(candidate.choice),
          step,
          tokens / step.si() / plan.gpus(),
          candidate.memory};
}

// Whether the space has a legal plan when one of the fixed keys is set free.
bool legal_without(const SearchRequest& request, std::size_t left_out) {
  SearchRequest freer = request;
  freer.fixed.erase(freer.fixed.begin() + static_cast<std::ptrdiff_t>(left_out));
  for (const System& system : freer.systems)
    for (int gpus : freer.gpus)
      for (std::int64_t gbs : freer.gbs) {
        const PlanSpace space{freer.model, system, gpus, gbs, freer.fixed};
        PlanRefusal unused;
        const auto stop = [](const PlanSpace::Choice&, const Scenario&) { return false; };
        for (int part = 0; part < space.parts(); ++part)
          if (!space.visit(part, stop, unused)) return true;
      }
  return false;
}

std::string joined(const Fixed& fixed) {
  std::string text = fixed.key + "=";
  for (const std::string& value : fixed.values)
    text += (&value == &fixed.values.front() ? "" : ",") + value;
  return text;
}

[[noreturn]] void fail_empty(const SearchRequest& request, const SearchShare& sum) {
  if (sum.legal > 0)
    fail_infeasible({},
                    "none of the " + std::to_string(sum.legal) +
                        " plans that divide fits: the smallest (" + sum.smallest + ") needs " +
                        gigabytes_text(Bytes{sum.least_memory}) + " a GPU, and may fill " +
                        gigabytes_text(request.max_memory * request.systems.front().gpu.memory),
                    "use more GPUs, or GPUs with more memory" +
                        std::string{request.max_memory < 1.0 ? ", or raise --max-memory" : ""});
  std::string culprits;
  for (std::size_t i = 0; i < request.fixed.size(); ++i)
    if (legal_without(request, i))
      culprits += (culprits.empty() ? "" : " or ") + joined(request.fixed[i]);
  fail_infeasible({}, "no plan divides: " + sum.refusal.reason,
                  culprits.empty() ? "" : "there are plans without --fix " + culprits);
}

// How far from it the fastest plan is: the same search without a deadline.
[[noreturn]] void fail_too_late(const SearchRequest& request, std::int64_t fits) {
  SearchRequest patient = request;
  patient.goal = Goal::training_time;
  patient.tokens = request.deadline->tokens;
  patient.deadline.reset();
  patient.pareto = false;
  patient.top = 1;
  const Found best = search(patient).plans.front();
  const Seconds allowed = request.deadline->time;
  const Seconds needed = best.result.bill->time;
  char times[32];
  std::snprintf(times, sizeof times, "%.3g", needed / allowed);
  fail_infeasible({"", "--deadline"},
                  "none of the " + std::to_string(fits) + " plans that fit is fast enough: the " +
                      "fastest takes " + span_text(needed) + ", " + times +
                      " times the time allowed (--gpus " +
                      std::to_string(best.result.scenario.plan.gpus()) + " " + best.flags + ")",
                  "allow more time, or more GPUs");
}

Leaders no_leaders(const SearchRequest& request) {
  return {request.pareto         ? Leaders::Kind::front
          : request.all_settings ? Leaders::Kind::top
                                 : Leaders::Kind::layouts,
          request.top};
}

// Simulates candidates in the order of their bounds until no other can be among the leaders.
class Simulations {
 public:
  // `talk`: with other shards, if there are some.
  Simulations(const SearchRequest& request, const SearchGround& ground, const Objective& objective,
              Explored explored, ShardTalk* talk)
      : request_{request},
        ground_{ground},
        objective_{objective},
        candidates_{std::move(explored.candidates)},
        layouts_{std::move(explored.layouts)},
        talk_{talk},
        leaders_{no_leaders(request)},
        workers_leaders_{no_leaders(request)} {
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Candidate& a, const Candidate& b) {
                       return std::pair{a.bound, a.bound_s} < std::pair{b.bound, b.bound_s};
                     });
  }

  void run(const Stopwatch& stopwatch, SearchProgress& progress,
           const std::function<void(const SearchProgress&)>& watch) {
    const auto out_of_time = [&] {
      return request_.budget && stopwatch.passed() > *request_.budget;
    };
    std::int64_t next = 0;
    const auto count = static_cast<std::int64_t>(candidates_.size());
    listen();
    run_tasks(
        request_.workers, {},
        [&]() -> std::optional<std::int64_t> {
          // What is passed over here is passed over below as well: leaders only get better.
          while (next < count && !leaders_.may_take(candidate(next))) {
            if (leaders_.kind() == Leaders::Kind::top) return std::nullopt;
            ++next;
          }
          if (next >= count || (next > 0 && out_of_time())) return std::nullopt;
          return next++;
        },
        [&](std::int64_t task) {
          Answer answer;
          if (const auto time = simulate(candidate(task)))
            answer.bytes.assign(reinterpret_cast<const char*>(&*time), sizeof *time);
          return answer;
        },
        [&](const Outcome& outcome) {
          const Candidate& one = candidate(outcome.task);
          done_ = outcome.task + 1;
          // Workers are ahead: this one was asked for before the leaders were known.
          if (!leaders_.may_take(one)) return true;
          fail_if_it_failed(outcome, "plan " + std::to_string(one.number));
          if (outcome.bytes.empty()) return true;
          Seconds time;
          std::memcpy(&time, outcome.bytes.data(), sizeof time);
          offer(one, time);
          if (talk_ && talk_->is_due()) {
            talk_->say(own_leaders());
            listen();
          }
          progress.simulated = simulated_;
          progress.bound = one.bound;
          if (!leaders_.ranked().empty()) progress.best = leaders_.ranked().front().score;
          if (watch) {
            progress.plan = orrery::simulated(ground_, one, scenario_of(one), time);
            progress.leading.clear();
            for (const Leader& leader : leaders_.ranked())
              progress.leading.push_back(leader.candidate.number);
            watch(progress);
          }
          return true;
        });
    // Stopped while it enumerated: the most promising plan is the best so far.
    if (Interruption::asked() && done_ == 0) {
      if (const auto time = simulate(candidates_.front())) offer(candidates_.front(), *time);
      done_ = 1;
    }
  }

  void tell(SearchShare& share) const {
    share.fits = static_cast<std::int64_t>(candidates_.size());
    share.simulated = simulated_;
    for (std::int64_t i = done_; i < share.fits; ++i) {
      if (!leaders_.may_take(candidate(i))) continue;
      ++share.left;
      share.best_unexplored = std::min(share.best_unexplored, candidate(i).bound);
    }
    share.leaders = own_leaders();
  }

  // Those of this shard.
  std::vector<Leader> own_leaders() const {
    std::vector<Leader> own;
    for (const Leader& leader : leaders_.ranked())
      if (leader.candidate.number >= 0) own.push_back(leader);
    return own;
  }

 private:
  void listen() {
    if (!talk_) return;
    for (Leader leader : talk_->heard()) {
      if (!ground_.has(leader.candidate)) continue;
      leader.candidate.number = -1;
      leader.candidate.layout = layouts_.of(leader.candidate);
      const auto is_it = [&](const Leader& known) {
        return known.candidate.space == leader.candidate.space &&
               known.candidate.choice == leader.candidate.choice;
      };
      if (std::none_of(leaders_.ranked().begin(), leaders_.ranked().end(), is_it))
        leaders_.offer(leader.candidate, leader.time, leader.score);
    }
  }
  const Candidate& candidate(std::int64_t task) const {
    return candidates_[static_cast<std::size_t>(task)];
  }
  Scenario scenario_of(const Candidate& one) const { return ground_.scenario(one); }
  // In a worker. Nothing where the prices of its own routing show that it cannot be among the
  // leaders, as far as this worker knows them.
  std::optional<Seconds> simulate(const Candidate& one) {
    const Scenario scenario = scenario_of(one);
    const Economics* prices = ground_.prices(one.space);
    EstimateContext& context = ground_.context(one.space);
    KnownPassTimes& passes = workers_passes_.try_emplace(one.space, context).first->second;
    if (!workers_leaders_.may_take(sharpened(one, scenario, objective_, prices, passes)))
      return std::nullopt;
    const Seconds time = step_time(scenario, context);
    workers_leaders_.offer(one, time, objective_.score(scenario, time, prices));
    return time;
  }
  void offer(const Candidate& one, Seconds time) {
    leaders_.offer(one, time, objective_.score(scenario_of(one), time, ground_.prices(one.space)));
    ++simulated_;
  }

  const SearchRequest& request_;
  const SearchGround& ground_;
  const Objective& objective_;
  std::vector<Candidate> candidates_;
  LayoutNumbers layouts_;
  ShardTalk* talk_;
  Leaders leaders_;
  Leaders workers_leaders_;  // Of the plans that this process has simulated itself.
  std::map<std::int32_t, KnownPassTimes> workers_passes_;  // By space.
  std::int64_t done_ = 0;                                  // Candidates simulated or passed over.
  std::int64_t simulated_ = 0;
};

SearchShare share_of(const SearchRequest& request, const SearchGround& ground, Shard shard,
                     ShardTalk* talk, const std::function<void(const SearchProgress&)>& watch) {
  const Stopwatch stopwatch;
  const Objective objective{request.goal, request.deadline, request.failures};
  SearchProgress progress;
  Explored explored = explore_all(request, ground, objective, shard, stopwatch, progress, watch);
  SearchShare share;
  share.shard = shard;
  share.legal = explored.sum.legal;
  share.parts_cut_short = std::move(explored.parts_cut_short);
  share.least_memory = explored.sum.least_memory;
  share.smallest = std::move(explored.sum.smallest);
  share.refusal = std::move(explored.sum.refusal);
  if (!explored.candidates.empty()) {
    Simulations simulations{request, ground, objective, std::move(explored), talk};
    simulations.run(stopwatch, progress, watch);
    simulations.tell(share);
  }
  share.interrupted = Interruption::asked();
  return share;
}

// Counts and reasons of all shares.
SearchShare sum_of(const std::vector<SearchShare>& shares) {
  SearchShare sum;
  std::set<int> cut_short;
  for (const SearchShare& share : shares) {
    sum.legal += share.legal;
    sum.fits += share.fits;
    sum.simulated += share.simulated;
    sum.left += share.left;
    sum.best_unexplored = std::min(sum.best_unexplored, share.best_unexplored);
    sum.interrupted |= share.interrupted;
    cut_short.insert(share.parts_cut_short.begin(), share.parts_cut_short.end());
    sum.refusal.take(share.refusal);
    if (!share.smallest.empty() && (sum.smallest.empty() || share.least_memory < sum.least_memory))
      sum.smallest = share.smallest, sum.least_memory = share.least_memory;
  }
  sum.parts_cut_short.assign(cut_short.begin(), cut_short.end());
  return sum;
}

Found found(const SearchRequest& request, const SearchGround& ground, const Leader& leader) {
  const Candidate& candidate = leader.candidate;
  Found one{estimate(ground.scenario(candidate), ground.context(candidate.space)).result,
            leader.score, false, ground.space(candidate).flags(candidate.choice)};
  if (const Economics* prices = ground.prices(candidate.space)) {
    const double tokens =
        request.deadline ? request.deadline->tokens : request.tokens.value_or(1e12);
    one.result.bill = bill_of(one.result.scenario, one.result.step_time, tokens, *prices);
  }
  return one;
}

SearchResult result_of(const SearchRequest& request, const SearchGround& ground,
                       const std::vector<SearchShare>& shares) {
  const SearchShare sum = sum_of(shares);
  SearchResult result;
  result.parts = parts_of(ground);
  result.parts_cut_short = static_cast<int>(sum.parts_cut_short.size());
  result.interrupted = sum.interrupted;
  if (sum.fits == 0) {
    if (!sum.interrupted) fail_empty(request, sum);
    result.optimal = false;
    return result;
  }
  result.legal = sum.legal;
  result.fits = sum.fits;
  result.simulated = sum.simulated;
  result.best_unexplored = sum.best_unexplored;
  result.optimal = sum.left == 0 && sum.parts_cut_short.empty();
  result.bounded_out = sum.fits - sum.simulated - sum.left;

  Leaders leaders = no_leaders(request);
  LayoutNumbers layouts{ground};
  for (const SearchShare& share : shares)
    for (Leader leader : share.leaders) {
      leader.candidate.layout = layouts.of(leader.candidate);
      leaders.offer(leader.candidate, leader.time, leader.score);
    }
  for (const Leader& leader : leaders.ranked())
    result.plans.push_back(found(request, ground, leader));
  for (Found& one : result.plans) one.tie = is_tie(one, result.plans.front(), request);
  if (result.plans.empty() && result.optimal) {
    // Only a deadline lets none be listed of plans that fit: shards that say so are none.
    if (!request.deadline)
      fail_input({}, "the shards list none of " + grouped(result.fits) + " plans that fit",
                 "compute them again");
    fail_too_late(request, result.fits);
  }
  return result;
}

}  // namespace

SearchResult search(const SearchRequest& request,
                    const std::function<void(const SearchProgress&)>& watch) {
  const SearchGround ground{request};
  return result_of(request, ground, {share_of(request, ground, {}, nullptr, watch)});
}

SearchShare search_share(const SearchRequest& request, Shard shard, ShardTalk& talk,
                         const std::function<void(const SearchProgress&)>& watch) {
  return share_of(request, SearchGround{request}, shard, &talk, watch);
}

SearchResult put_together(const SearchRequest& request, const std::vector<SearchShare>& shares) {
  const SearchGround ground{request};
  for (const SearchShare& share : shares)
    for (const Leader& leader : share.leaders)
      if (!ground.has(leader.candidate))
        fail_input({"", "shard " + std::to_string(share.shard.index)},
                   "lists a plan that the search has not got", "compute this shard again");
  return result_of(request, ground, shares);
}

namespace {

// All objectives but the number of GPUs are a plan's step time times what a second of it counts.
StepRange range_of_score(const Found& found, Goal goal) {
  const StepRange& range = found.result.range;
  return goal == Goal::gpus ? range : range.scaled(found.score / range.step.si());
}

}  // namespace

bool is_tie(const Found& one, const Found& best, const SearchRequest& request) {
  if (&one == &best) return true;
  if (request.pareto || (request.goal == Goal::gpus && one.score != best.score)) return false;
  return difference(range_of_score(best, request.goal), range_of_score(one, request.goal)).is_tie();
}

}  // namespace orrery
