#include "sim/analysis/search/candidate.hpp"

#include <cassert>
#include <cstring>
#include <type_traits>
#include <utility>

#include "sim/analysis/search/bound.hpp"
#include "sim/base/core/stopwatch.hpp"
#include "sim/cost/memory/memory.hpp"

namespace orrery {
namespace {

static_assert(std::is_trivially_copyable_v<Candidate>);

// The plan with what makes no difference to its passes taken out.
Plan as_priced(Plan plan) {
  plan.zero = 0;
  plan.dp_overlap = false;
  if (plan.schedule->wraps()) plan.schedule = &usual_schedule(1);
  plan.gbs = plan.microbatches = 1;
  return plan;
}

// Pass times of the plan asked for last: neighbours in the enumeration have them in common.
class PassTimesOfNeighbours {
 public:
  explicit PassTimesOfNeighbours(EstimateContext& context) : context_{context} {}

  const PassTimes& of(const Scenario& scenario) {
    const Plan key = as_priced(scenario.plan);
    for (const auto& [known, times] : known_)
      if (known == key) return times;
    Scenario priced = scenario;
    priced.plan.zero = 0;
    if (known_.size() == most) known_.erase(known_.begin());
    known_.emplace_back(key, pass_times(priced, context_.kernels(priced.plan.dtype),
                                        context_.collectives(priced.plan)));
    return known_.back().second;
  }

 private:
  static constexpr std::size_t most = 16;
  EstimateContext& context_;
  std::vector<std::pair<Plan, PassTimes>> known_;
};

class Writer {
 public:
  template <class Value>
  void put(const Value& value) {
    static_assert(std::is_trivially_copyable_v<Value>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put_text(const std::string& text) {
    put(text.size());
    bytes_ += text;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_{bytes} {}
  template <class Value>
  Value get() {
    Value value;
    assert(at_ + sizeof value <= bytes_.size());
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::string get_text() {
    const auto size = get<std::size_t>();
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }

 private:
  const std::string& bytes_;
  std::size_t at_ = 0;
};

}  // namespace

Part explore(const PlanSpace& space, int part, double most_memory, const Objective& objective,
             const Economics* economics, EstimateContext& context,
             std::optional<Seconds> most_time) {
  const Stopwatch stopwatch;
  Part found;
  PassTimesOfNeighbours passes{context};
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
    if (!too_large() || smallest()) memory = memory_of(scenario, *context.loads(scenario));
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
    const Seconds bound =
        step_lower_bound(scenario, passes.of(scenario), context.collectives(scenario.plan));
    candidate.bound_s = bound.si();
    candidate.bound = objective.score(scenario, bound, economics);
    candidate.memory = memory.peak() / memory.capacity;
    found.fitting.push_back(candidate);
    return true;
  };
  found.whole = space.visit(part, look_at, found.refusal);
  return found;
}

std::string packed(const Part& part) {
  Writer writer;
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
  Reader reader{bytes};
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
