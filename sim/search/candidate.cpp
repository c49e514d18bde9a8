#include "sim/search/candidate.hpp"

#include <algorithm>
#include <type_traits>

#include "sim/core/progress.hpp"
#include "sim/core/worker_pool.hpp"
#include "sim/layers/memory.hpp"

namespace orrery {
namespace {

static_assert(std::is_trivially_copyable_v<Candidate>);

}  // namespace

Candidate sharpened(Candidate one, const Scenario& scenario, const Objective& objective,
                    const Economics* economics, KnownPassTimes& passes) {
  if (const auto bound = passes.routed_bound(scenario)) {
    one.bound_s = std::max(one.bound_s, bound->si());
    one.bound = std::max(one.bound, objective.score(scenario, *bound, economics));
  }
  return one;
}

Part explore(const PlanSpace& space, int part, Shard shard, double most_memory,
             const Objective& objective, const Economics* economics, EstimateContext& context,
             std::optional<Seconds> most_time) {
  const Stopwatch stopwatch;
  Part found;
  KnownPassTimes passes{context};
  const auto look_at = [&](const PlanSpace::Choice& choice, const Scenario& scenario) {
    if (most_time && !found.fitting.empty() && stopwatch.passed() > *most_time) return false;
    // Where tokens go is found out only if the plan would fit with its routing being even, or be
    // the smallest.
    MemoryReport memory = least_memory_of(scenario);
    const Bytes most = most_memory * memory.capacity;
    const auto too_large = [&] { return memory.peak() > most; };
    const auto smallest = [&] {
      return found.smallest.empty() || memory.peak().si() < found.least_memory;
    };
    if (!too_large() || smallest())
      if (const auto loads = context.loads(scenario); !loads->even())
        memory = memory_of(scenario, *loads);
    ++found.legal;
    if (too_large()) {
      if (smallest()) {
        found.least_memory = memory.peak().si();
        found.smallest = space.flags(choice);
      }
      return true;
    }
    Candidate candidate;
    candidate.choice = choice;
    const Seconds bound = passes.bound(scenario);
    candidate.bound_s = bound.si();
    candidate.bound = objective.score(scenario, bound, economics);
    candidate.memory = memory.peak() / memory.capacity;
    found.fitting.push_back(candidate);
    return true;
  };
  found.whole = space.visit(part, look_at, found.refusal, shard);
  return found;
}

std::string packed(const Part& part) {
  AnswerWriter writer;
  writer.put(part.legal);
  writer.put(part.whole);
  writer.put(part.least_memory);
  writer.put_text(part.smallest);
  writer.put_text(part.refusal.reason);
  writer.put(part.refusal.depth);
  writer.put(part.fitting.size());
  for (const Candidate& candidate : part.fitting) writer.put(candidate);
  return writer.take();
}

Part unpacked(const std::string& bytes) {
  AnswerReader reader{bytes};
  Part part;
  part.legal = reader.get<std::int64_t>();
  part.whole = reader.get<bool>();
  part.least_memory = reader.get<double>();
  part.smallest = reader.get_text();
  part.refusal.reason = reader.get_text();
  part.refusal.depth = reader.get<std::size_t>();
  part.fitting.resize(reader.get<std::size_t>());
  for (Candidate& candidate : part.fitting) candidate = reader.get<Candidate>();
  return part;
}

}  // namespace orrery
