#include "sim/search/candidate.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "sim/core/progress.hpp"
#include "sim/core/worker_pool.hpp"
#include "sim/layers/memory.hpp"
#include "sim/training/estimate.hpp"

namespace orrery {
namespace {

// Further apart than the clock's rounding can reach, nearer than anything that is printed.
constexpr int bits = 36;

double rounded_score(double score) {
  if (!std::isnormal(score)) return score;
  const int exponent = bits - std::ilogb(score);
  return std::scalbn(std::round(std::scalbn(score, exponent)), -exponent);
}

}  // namespace

bool Candidate::scores_below(const Candidate& other) const {
  const double own = rounded_score(score), its = rounded_score(other.score);
  return own != its ? own < its : rounded_score(step_s) < rounded_score(other.step_s);
}

bool Candidate::ranks_before(const Candidate& other) const {
  if (scores_below(other) || other.scores_below(*this)) return scores_below(other);
  return std::tie(memory, space, choice) < std::tie(other.memory, other.space, other.choice);
}

bool Candidate::bound_before(const Candidate& other) const {
  return std::tie(score, step_s, space, choice) <
         std::tie(other.score, other.step_s, other.space, other.choice);
}

Candidate PlanScorer::bounded(const PlanSpace::Choice& choice, const Scenario& scenario) const {
  const Seconds bound = passes.bound(scenario);
  Candidate candidate;
  candidate.choice = choice;
  candidate.step_s = bound.si();
  candidate.score = objective.score(scenario, bound, economics);
  return candidate;
}

std::optional<Candidate> PlanScorer::simulated(Candidate one, const Scenario& scenario,
                                               const BestCandidates<Candidate>& known) const {
  if (const auto bound = passes.routed_bound(scenario)) {
    one.step_s = std::max(one.step_s, bound->si());
    one.score = std::max(one.score, objective.score(scenario, *bound, economics));
  }
  if (!known.may_take(one)) return std::nullopt;
  const Seconds step = step_time(scenario, context);
  one.step_s = step.si();
  one.score = objective.score(scenario, step, economics);
  return one;
}

std::string NoPlan::why_none_divides() const {
  return (refusal.reason.starts_with("--model:") ? "" : "no plan divides: ") + refusal.reason;
}

void NoPlan::take(const NoPlan& other) {
  refusal.take(other.refusal);
  if (other.smallest.empty() || (!smallest.empty() && least_memory <= other.least_memory)) return;
  smallest = other.smallest;
  least_memory = other.least_memory;
}

std::optional<double> NoPlan::memory_if_it_fits(const Scenario& scenario, double most,
                                                EstimateContext& context,
                                                const std::function<std::string()>& flags) {
  MemoryReport memory = least_memory_of(scenario);
  const auto fits = [&] { return memory.peak() <= most * memory.capacity && memory.host_fits(); };
  const auto is_smallest = [&] { return smallest.empty() || memory.peak().si() < least_memory; };
  if (fits() || is_smallest())
    if (const auto loads = context.loads(scenario); !loads->even())
      memory = memory_of(scenario, *loads);
  if (fits()) return memory.peak() / memory.capacity;
  if (is_smallest()) {
    least_memory = memory.peak().si();
    smallest = flags();
  }
  return std::nullopt;
}

Part explore(const PlanSpace& space, int part, Shard shard, double most_memory,
             const PlanScorer& scorer, std::optional<Seconds> most_time) {
  const Stopwatch stopwatch;
  Part found;
  const auto look_at = [&](const PlanSpace::Choice& choice, const Scenario& scenario) {
    if (most_time && !found.fitting.empty() && stopwatch.passed() > *most_time) return false;
    // A routing that does not suit the plan leaves here: the plan is not legal.
    const auto memory = found.none.memory_if_it_fits(scenario, most_memory, scorer.context,
                                                     [&] { return space.flags(choice); });
    ++found.legal;
    if (!memory) return true;
    Candidate& candidate = found.fitting.emplace_back(scorer.bounded(choice, scenario));
    candidate.memory = *memory;
    return true;
  };
  found.whole = space.visit(part, look_at, found.none.refusal, shard);
  return found;
}

std::string packed(const Part& part) {
  AnswerWriter writer;
  writer.put(part.legal);
  writer.put(part.whole);
  writer.put(part.none.least_memory);
  writer.put_text(part.none.smallest);
  writer.put_text(part.none.refusal.reason);
  writer.put(part.none.refusal.depth);
  writer.put(part.fitting.size());
  for (const Candidate& candidate : part.fitting) writer.put(candidate);
  return writer.take();
}

Part unpacked(const std::string& bytes) {
  AnswerReader reader{bytes};
  Part part;
  part.legal = reader.get<std::int64_t>();
  part.whole = reader.get<bool>();
  part.none.least_memory = reader.get<double>();
  part.none.smallest = reader.get_text();
  part.none.refusal.reason = reader.get_text();
  part.none.refusal.depth = reader.get<std::size_t>();
  part.fitting.resize(reader.get<std::size_t>());
  for (Candidate& candidate : part.fitting) candidate = reader.get<Candidate>();
  return part;
}

}  // namespace orrery
