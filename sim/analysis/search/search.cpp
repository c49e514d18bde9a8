#include "sim/analysis/search/search.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <stdexcept>

#include "sim/analysis/search/candidate.hpp"
#include "sim/analysis/search/leaders.hpp"
#include "sim/analysis/search/ties.hpp"
#include "sim/base/core/stopwatch.hpp"
#include "sim/base/text/number_text.hpp"
#include "sim/base/workers/interruption.hpp"
#include "sim/base/workers/worker_pool.hpp"
#include "sim/work/result/bill.hpp"

namespace orrery {
namespace {

// What is built once and shared by all workers, which are forked from here.
struct Ground {
  std::vector<PlanSpace> spaces;
  std::vector<int> system_of;                              // By space.
  std::vector<std::unique_ptr<EstimateContext>> contexts;  // By system.
  std::vector<std::optional<Economics>> economics;         // By system.

  EstimateContext& context(int space) const {
    return *contexts[static_cast<std::size_t>(system_of[static_cast<std::size_t>(space)])];
  }
  const Economics* prices(int space) const {
    const auto& known =
        economics[static_cast<std::size_t>(system_of[static_cast<std::size_t>(space)])];
    return known ? &*known : nullptr;
  }
};

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

Ground prepare(const SearchRequest& request) {
  Ground ground;
  for (std::size_t s = 0; s < request.systems.size(); ++s) {
    const System& system = request.systems[s];
    ground.contexts.push_back(std::make_unique<EstimateContext>(system));
    ground.economics.emplace_back();
    if (needs_prices(request)) {
      ground.economics.back() = read_economics(system.gpu.name, request.economics);
      require_prices(request.goal, *ground.economics.back(), system.gpu.name);
    }
    for (int gpus : request.gpus)
      for (std::int64_t gbs : request.gbs) {
        ground.spaces.emplace_back(request.model, system, gpus, gbs, request.fixed);
        ground.system_of.push_back(static_cast<int>(s));
      }
  }
  return ground;
}

void fail_if_it_failed(const Outcome& outcome, const std::string& what) {
  if (!outcome.failure.empty())
    throw std::runtime_error{"a worker of the search at " + what + ": " + outcome.failure};
}

struct Explored {
  std::vector<Candidate> candidates;
  Part sum;  // Counts and reasons of all parts.
  int parts = 0;
  int parts_cut_short = 0;
};

// Space and part.
using PartPlace = std::pair<std::size_t, int>;

std::vector<PartPlace> parts_of(const Ground& ground) {
  std::vector<PartPlace> parts;
  for (std::size_t s = 0; s < ground.spaces.size(); ++s)
    for (int p = 0; p < ground.spaces[s].parts(); ++p) parts.emplace_back(s, p);
  return parts;
}

// Plans of all parts, in the order of enumeration.
Explored sum_of_parts(const Ground& ground, const std::vector<PartPlace>& places,
                      std::vector<Part>& parts) {
  Explored all;
  all.parts = static_cast<int>(parts.size());
  std::map<std::pair<std::int32_t, PlanSpace::Choice>, std::int32_t> layouts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Part& part = parts[i];
    const PlanSpace& space = ground.spaces[places[i].first];
    all.parts_cut_short += part.whole ? 0 : 1;
    all.sum.legal += part.legal;
    all.sum.refusal.take(part.refusal);
    if (!part.smallest.empty() &&
        (all.sum.smallest.empty() || part.least_memory < all.sum.least_memory))
      all.sum.smallest = part.smallest, all.sum.least_memory = part.least_memory;
    for (Candidate& candidate : part.fitting) {
      candidate.space = static_cast<std::int32_t>(places[i].first);
      candidate.number = static_cast<std::int32_t>(all.candidates.size());
      candidate.layout = layouts
                             .try_emplace({candidate.space, space.layout(candidate.choice)},
                                          static_cast<std::int32_t>(layouts.size()))
                             .first->second;
      all.candidates.push_back(candidate);
    }
    part.fitting = {};
  }
  return all;
}

// Every part; with a budget at first for a short time, and what that cut short again for longer,
// as often as half of it allows: whatever time there is goes to all tp x pp alike.
Explored explore_all(const SearchRequest& request, const Ground& ground, const Objective& objective,
                     const Stopwatch& stopwatch, SearchProgress& progress,
                     const std::function<void(const SearchProgress&)>& watch) {
  const std::vector<PartPlace> places = parts_of(ground);
  std::vector<Part> parts(places.size());
  for (Part& part : parts) part.whole = false;
  std::vector<std::size_t> todo(places.size());
  std::iota(todo.begin(), todo.end(), std::size_t{0});
  progress.parts = static_cast<int>(places.size());
  constexpr double longer = 4.0;
  const double half = request.budget ? 0.5 * request.budget->si() : 0.0;
  for (double time = 0.02; !todo.empty(); time *= longer) {
    std::size_t next = 0;
    std::vector<std::size_t> cut;
    run_tasks(
        request.workers, {},
        [&]() -> std::optional<std::int64_t> {
          if (request.budget && progress.fits > 0 && stopwatch.passed().si() >= half)
            return std::nullopt;
          return next < todo.size() ? std::optional{static_cast<std::int64_t>(todo[next++])}
                                    : std::nullopt;
        },
        [&](std::int64_t task) {
          const auto [space, part] = places[static_cast<std::size_t>(task)];
          std::optional<Seconds> most;
          if (request.budget) most = Seconds{std::min(time, half - stopwatch.passed().si())};
          return Answer{packed(explore(ground.spaces[space], part, request.max_memory, objective,
                                       ground.prices(static_cast<int>(space)),
                                       ground.context(static_cast<int>(space)), most)),
                        false};
        },
        [&](const Outcome& outcome) {
          fail_if_it_failed(outcome, "part " + std::to_string(outcome.task));
          const auto place = static_cast<std::size_t>(outcome.task);
          Part part = unpacked(outcome.bytes);
          if (part.whole)
            ++progress.parts_done;
          else
            cut.push_back(place);
          // Cut short by the end of the time it may know less than before.
          if (part.whole || part.legal > parts[place].legal) {
            progress.legal += part.legal - parts[place].legal;
            progress.fits += static_cast<std::int64_t>(part.fitting.size()) -
                             static_cast<std::int64_t>(parts[place].fitting.size());
            parts[place] = std::move(part);
          }
          if (watch) watch(progress);
          return true;
        });
    todo = std::move(cut);
    if (Interruption::asked() || (request.budget && stopwatch.passed().si() >= half)) break;
  }
  return sum_of_parts(ground, places, parts);
}

SimulatedPlan simulated(const Ground& ground, const Candidate& candidate, const Scenario& scenario,
                        Seconds step) {
  const Plan& plan = scenario.plan;
  const double tokens = static_cast<double>(plan.gbs) * static_cast<double>(plan.seq);
  return {candidate.number,
          plan.gpus(),
          plan.gbs,
          ground.spaces[static_cast<std::size_t>(candidate.space)].flags(candidate.choice),
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

[[noreturn]] void fail_empty(const SearchRequest& request, const Part& sum) {
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

}  // namespace

SearchResult search(const SearchRequest& request,
                    const std::function<void(const SearchProgress&)>& watch) {
  const Stopwatch stopwatch;
  const Ground ground = prepare(request);
  const Objective objective{request.goal, request.deadline, request.failures};
  SearchProgress progress;
  Explored explored = explore_all(request, ground, objective, stopwatch, progress, watch);
  std::vector<Candidate>& candidates = explored.candidates;
  SearchResult result;
  result.parts = explored.parts;
  result.parts_cut_short = explored.parts_cut_short;
  if (candidates.empty() && Interruption::asked()) {
    result.interrupted = true;
    result.optimal = false;
    return result;
  }
  if (candidates.empty()) fail_empty(request, explored.sum);

  result.legal = explored.sum.legal;
  result.fits = static_cast<std::int64_t>(candidates.size());
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) {
                     return std::pair{a.bound, a.bound_s} < std::pair{b.bound, b.bound_s};
                   });

  const Leaders::Kind kind = request.pareto         ? Leaders::Kind::front
                             : request.all_settings ? Leaders::Kind::top
                                                    : Leaders::Kind::layouts;
  Leaders leaders{kind, request.top};
  const auto scenario_of = [&](const Candidate& candidate) {
    return ground.spaces[static_cast<std::size_t>(candidate.space)].scenario(candidate.choice);
  };
  const auto out_of_time = [&] { return request.budget && stopwatch.passed() > *request.budget; };
  std::int64_t next = 0;
  std::int64_t done = 0;  // Candidates simulated or passed over.
  const auto count = static_cast<std::int64_t>(candidates.size());
  run_tasks(
      request.workers, {},
      [&]() -> std::optional<std::int64_t> {
        // What is passed over here is passed over below as well: leaders only get better.
        while (next < count && !leaders.may_take(candidates[static_cast<std::size_t>(next)])) {
          if (kind == Leaders::Kind::top) return std::nullopt;
          ++next;
        }
        if (next >= count || (next > 0 && out_of_time())) return std::nullopt;
        return next++;
      },
      [&](std::int64_t task) {
        const Candidate& candidate = candidates[static_cast<std::size_t>(task)];
        const Seconds time = step_time(scenario_of(candidate), ground.context(candidate.space));
        Answer answer;
        answer.bytes.assign(reinterpret_cast<const char*>(&time), sizeof time);
        return answer;
      },
      [&](const Outcome& outcome) {
        const Candidate& candidate = candidates[static_cast<std::size_t>(outcome.task)];
        done = outcome.task + 1;
        // Workers are ahead: this one was asked for before the leaders were known.
        if (!leaders.may_take(candidate)) return true;
        fail_if_it_failed(outcome, "plan " + std::to_string(candidate.number));
        Seconds time;
        std::memcpy(&time, outcome.bytes.data(), sizeof time);
        const Scenario scenario = scenario_of(candidate);
        leaders.offer(candidate, time,
                      objective.score(scenario, time, ground.prices(candidate.space)));
        progress.simulated = ++result.simulated;
        progress.bound = candidate.bound;
        if (!leaders.ranked().empty()) progress.best = leaders.ranked().front().score;
        if (watch) {
          progress.plan = simulated(ground, candidate, scenario, time);
          progress.leading.clear();
          for (const Leader& leader : leaders.ranked())
            progress.leading.push_back(leader.candidate.number);
          watch(progress);
        }
        return true;
      });
  // Stopped while it enumerated: the most promising plan is the best so far.
  if (Interruption::asked() && done == 0) {
    const Candidate& first = candidates.front();
    const Scenario scenario = scenario_of(first);
    const Seconds time = step_time(scenario, ground.context(first.space));
    leaders.offer(first, time, objective.score(scenario, time, ground.prices(first.space)));
    done = result.simulated = 1;
  }
  std::int64_t left = 0;
  result.best_unexplored = std::numeric_limits<double>::infinity();
  for (std::int64_t i = done; i < count; ++i) {
    const Candidate& candidate = candidates[static_cast<std::size_t>(i)];
    if (!leaders.may_take(candidate)) continue;
    ++left;
    result.best_unexplored = std::min(result.best_unexplored, candidate.bound);
  }
  result.interrupted = Interruption::asked();
  result.optimal = left == 0 && result.parts_cut_short == 0;
  result.bounded_out = result.fits - result.simulated - left;

  for (const Leader& leader : leaders.ranked()) {
    const Candidate& candidate = leader.candidate;
    Found found{estimate(scenario_of(candidate), ground.context(candidate.space)).result,
                leader.score, false,
                ground.spaces[static_cast<std::size_t>(candidate.space)].flags(candidate.choice)};
    if (const Economics* prices = ground.prices(candidate.space)) {
      const Scenario& scenario = found.result.scenario;
      const double tokens =
          request.deadline ? request.deadline->tokens : request.tokens.value_or(1e12);
      found.result.bill = bill_of(scenario, found.result.step_time, tokens, *prices);
    }
    result.plans.push_back(std::move(found));
  }
  for (Found& found : result.plans) found.tie = is_tie(found, result.plans.front(), request);
  if (result.plans.empty() && result.optimal) fail_too_late(request, result.fits);
  return result;
}

}  // namespace orrery
