#include "sim/search/search.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "sim/core/number_text.hpp"
#include "sim/core/progress.hpp"
#include "sim/core/worker_pool.hpp"
#include "sim/search/best_first.hpp"
#include "sim/search/explored.hpp"
#include "sim/training/bill.hpp"

namespace orrery {
namespace {

bool needs_prices(const SearchRequest& request) {
  return request.goal == Goal::cost_per_token || request.goal == Goal::energy_per_token ||
         request.tokens || request.deadline;
}

// A bill may have gaps, a score may not.
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

SearchContext::SearchContext(const SearchRequest& request) {
  for (std::size_t s = 0; s < request.systems.size(); ++s) {
    const System& system = request.systems[s];
    contexts.push_back(std::make_unique<EstimateContext>(system));
    economics.emplace_back();
    if (needs_prices(request)) {
      economics.back() = read_economics(system, request.economics,
                                        {request.systems.begin(), request.systems.end()});
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

SimulatedPlan reported(const SearchContext& context, const Candidate& one) {
  const PlanSpace& space = context.space(one);
  const auto tokens = static_cast<double>(space.gbs() * context.scenario(one).plan.seq);
  return {one.number,          space.gpus(),
          space.gbs(),         space.flags(one.choice),
          Seconds{one.step_s}, tokens / one.step_s / space.gpus(),
          one.memory};
}

// True if the space has a legal plan when one of the fixed keys is set free.
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
                        " plans that divide fits: the smallest (" + sum.none.smallest + ") needs " +
                        gigabytes_text(Bytes{sum.none.least_memory}) + " a GPU, and may fill " +
                        gigabytes_text(request.max_memory * request.systems.front().gpu.memory),
                    "use more GPUs, or GPUs with more memory" +
                        std::string{request.max_memory < 1.0 ? ", or raise --max-memory" : ""});
  std::string culprits;
  for (std::size_t i = 0; i < request.fixed.size(); ++i)
    if (legal_without(request, i))
      culprits += (culprits.empty() ? "" : " or ") + joined(request.fixed[i]);
  fail_infeasible({}, sum.none.why_none_divides(),
                  culprits.empty() ? "" : "there are plans without --fix " + culprits);
}

// The message says how far from the deadline the fastest plan is, by the same search without one.
[[noreturn]] void fail_too_late(const SearchRequest& request, std::int64_t fits) {
  SearchRequest patient = request;
  patient.goal = Goal::training_time;
  patient.tokens = request.deadline->tokens;
  patient.deadline.reset();
  patient.list = {BestList::Kind::per_layout, 1};
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

// Simulates candidates of one shard in the order of their bounds.
class Simulations {
 public:
  // `talk`: null where there are no other shards.
  Simulations(const SearchRequest& request, const SearchContext& context,
              const Objective& objective, Explored explored, ShardExchange* exchange)
      : request_{request},
        context_{context},
        objective_{objective},
        candidates_{std::move(explored.candidates)},
        layouts_{std::move(explored.layouts)},
        exchange_{exchange},
        search_{candidates_, request.list} {
    std::sort(candidates_.begin(), candidates_.end(),
              [](const Candidate& a, const Candidate& b) { return a.bound_before(b); });
  }

  void run(const Stopwatch& stopwatch, SearchProgress& progress,
           const std::function<void(const SearchProgress&)>& watch) {
    const auto simulate = [&](const Candidate& one, const auto& known) {
      EstimateContext& estimates = context_.estimates(one.space);
      KnownPassTimes& passes = passes_.try_emplace(one.space, estimates).first->second;
      return PlanScorer{objective_, context_.prices(one.space), estimates, passes}.simulated(
          one, context_.scenario(one), known);
    };
    const auto on_simulated = [&](const Candidate& one, const Candidate& bounds) {
      if (exchange_ && exchange_->is_due()) {
        exchange_->send(own_best());
        listen();
      }
      progress.simulated = search_.evaluated();
      progress.bound = bounds.score;
      if (!search_.ranked().empty()) progress.best = search_.ranked().front().score;
      if (!watch) return;
      progress.plan = reported(context_, one);
      progress.leading.clear();
      for (const Candidate& best : search_.ranked()) progress.leading.push_back(best.number);
      watch(progress);
    };
    listen();
    search_.run(request_.workers, simulate, on_simulated,
                [&] { return request_.budget && stopwatch.passed() > *request_.budget; });
    // Stopped while it enumerated: the most promising plan is the best so far.
    if (Interruption::requested() && search_.done() == 0) search_.run_first(simulate);
  }

  void report(SearchShare& share) const {
    share.fits = std::ssize(candidates_);
    share.simulated = search_.evaluated();
    const auto left = search_.left();
    share.left = left.candidates;
    share.best_unexplored = left.score;
    share.best = own_best();
  }

 private:
  // Those of this shard.
  std::vector<Candidate> own_best() const {
    std::vector<Candidate> own;
    for (const Candidate& one : search_.ranked())
      if (one.number >= 0) own.push_back(one);
    return own;
  }

  void listen() {
    if (!exchange_) return;
    for (Candidate one : exchange_->received()) {
      if (!context_.has(one)) continue;
      one.number = -1;
      one.layout = layouts_.of(one);
      const auto is_it = [&](const Candidate& known) {
        return known.space == one.space && known.choice == one.choice;
      };
      if (std::none_of(search_.ranked().begin(), search_.ranked().end(), is_it)) search_.offer(one);
    }
  }

  const SearchRequest& request_;
  const SearchContext& context_;
  const Objective& objective_;
  std::vector<Candidate> candidates_;  // Sorted by their bounds.
  LayoutNumbers layouts_;
  ShardExchange* exchange_;
  BestFirstSearch<Candidate> search_;
  std::map<std::int32_t, KnownPassTimes> passes_;  // One a space; each worker has its own.
};

SearchShare share_of(const SearchRequest& request, const SearchContext& context, Shard shard,
                     ShardExchange* exchange,
                     const std::function<void(const SearchProgress&)>& watch) {
  const Stopwatch stopwatch;
  const Objective objective{request.goal, request.deadline, request.failures};
  SearchProgress progress;
  Explored explored = explore_all(request, context, objective, shard, stopwatch, progress, watch);
  SearchShare share;
  share.shard = shard;
  share.legal = explored.legal;
  share.parts_cut_short = std::move(explored.parts_cut_short);
  share.none = std::move(explored.none);
  if (!explored.candidates.empty()) {
    Simulations simulations{request, context, objective, std::move(explored), exchange};
    simulations.run(stopwatch, progress, watch);
    simulations.report(share);
  }
  share.interrupted = Interruption::requested();
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
    sum.none.take(share.none);
  }
  sum.parts_cut_short.assign(cut_short.begin(), cut_short.end());
  return sum;
}

Found found(const SearchRequest& request, const SearchContext& context, const Candidate& one) {
  Found found{estimate(context.scenario(one), context.estimates(one.space)).result, one.score,
              false, context.space(one).flags(one.choice)};
  if (const Economics* prices = context.prices(one.space)) {
    const double tokens =
        request.deadline ? request.deadline->tokens : request.tokens.value_or(1e12);
    found.result.bill = bill_of(found.result.scenario, found.result.step_time, tokens, *prices);
  }
  return found;
}

SearchResult result_of(const SearchRequest& request, const SearchContext& context,
                       const std::vector<SearchShare>& shares) {
  const SearchShare sum = sum_of(shares);
  SearchResult result;
  result.parts = parts_of(context);
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

  BestCandidates<Candidate> best{request.list};
  LayoutNumbers layouts{context};
  for (const SearchShare& share : shares)
    for (Candidate one : share.best) {
      one.layout = layouts.of(one);
      best.offer(one);
    }
  for (const Candidate& one : best.ranked()) result.plans.push_back(found(request, context, one));
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
  const SearchContext context{request};
  return result_of(request, context, {share_of(request, context, {}, nullptr, watch)});
}

SearchShare search_share(const SearchRequest& request, Shard shard, ShardExchange& exchange,
                         const std::function<void(const SearchProgress&)>& watch) {
  return share_of(request, SearchContext{request}, shard, &exchange, watch);
}

SearchResult put_together(const SearchRequest& request, const std::vector<SearchShare>& shares) {
  const SearchContext context{request};
  for (const SearchShare& share : shares)
    for (const Candidate& one : share.best)
      if (!context.has(one))
        fail_input({"", "shard " + std::to_string(share.shard.index)},
                   "lists a plan that the search has not got", "compute this shard again");
  return result_of(request, context, shares);
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
  if (request.list.is_front() || (request.goal == Goal::gpus && one.score != best.score))
    return false;
  return difference(range_of_score(best, request.goal), range_of_score(one, request.goal)).is_tie();
}

}  // namespace orrery
