#include "sim/search/leaders.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace orrery {
namespace {

// Further apart than the clock's rounding can reach, nearer than anything that is printed.
constexpr int bits = 36;

double rounded(double score) {
  if (!std::isnormal(score)) return score;
  const int exponent = bits - std::ilogb(score);
  return std::scalbn(std::round(std::scalbn(score, exponent)), -exponent);
}

// Of equal scores the faster plan is the better one.
struct Standing {
  double score;
  double time_s;
};

bool is_less(Standing a, Standing b) {
  if (rounded(a.score) != rounded(b.score)) return rounded(a.score) < rounded(b.score);
  return rounded(a.time_s) < rounded(b.time_s);
}

Standing of(const Leader& leader) { return {leader.score, leader.time.si()}; }
Standing best_of(const Candidate& candidate) { return {candidate.bound, candidate.bound_s}; }

bool leads(const Leader& a, const Leader& b) {
  if (is_less(of(a), of(b)) || is_less(of(b), of(a))) return is_less(of(a), of(b));
  return std::tie(a.candidate.memory, a.candidate.space, a.candidate.choice) <
         std::tie(b.candidate.memory, b.candidate.space, b.candidate.choice);
}

// Neither slower nor larger, and better in one or first of equals.
bool beats(const Leader& a, const Leader& b) {
  return leads(a, b) && a.candidate.memory <= b.candidate.memory;
}

}  // namespace

std::vector<Leader>::const_iterator Leaders::of_layout(std::int32_t layout) const {
  if (kind_ != Kind::layouts) return leaders_.end();
  return std::find_if(leaders_.begin(), leaders_.end(),
                      [&](const Leader& leader) { return leader.candidate.layout == layout; });
}

bool Leaders::may_take(const Candidate& candidate) const {
  if (std::isinf(candidate.bound)) return false;
  if (kind_ != Kind::front) {
    // A layout that is listed has to be beaten; of one that is not, no plan was good enough.
    if (const auto own = of_layout(candidate.layout); own != leaders_.end())
      return !is_less(of(*own), best_of(candidate));
    return leaders_.size() < most_ || !is_less(of(leaders_.back()), best_of(candidate));
  }
  return std::none_of(leaders_.begin(), leaders_.end(), [&](const Leader& leader) {
    return is_less(of(leader), best_of(candidate)) && leader.candidate.memory <= candidate.memory;
  });
}

void Leaders::offer(const Candidate& candidate, Seconds time, double score) {
  if (std::isinf(score)) return;
  const Leader fresh{candidate, time, score};
  if (kind_ == Kind::front) {
    if (std::any_of(leaders_.begin(), leaders_.end(),
                    [&](const Leader& leader) { return beats(leader, fresh); }))
      return;
    std::erase_if(leaders_, [&](const Leader& leader) { return beats(fresh, leader); });
  } else if (const auto own = of_layout(candidate.layout); own != leaders_.end()) {
    if (leads(*own, fresh)) return;
    leaders_.erase(own);
  }
  leaders_.insert(std::upper_bound(leaders_.begin(), leaders_.end(), fresh, leads), fresh);
  if (kind_ != Kind::front && leaders_.size() > most_) leaders_.pop_back();
}

}  // namespace orrery
