#include "sim/search/leaders.hpp"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

// Further apart than the clock's rounding can reach, nearer than anything that is printed.
constexpr int bits = 36;

double rounded(double score) {
  if (!std::isnormal(score)) return score;
  const int exponent = bits - std::ilogb(score);
  return std::scalbn(std::round(std::scalbn(score, exponent)), -exponent);
}

bool is_less(double a, double b) { return rounded(a) < rounded(b); }

bool leads(const Leader& a, const Leader& b) {
  if (rounded(a.score) != rounded(b.score)) return rounded(a.score) < rounded(b.score);
  return a.candidate.number < b.candidate.number;
}

// Neither slower nor larger, and better in one or first of equals.
bool beats(const Leader& a, const Leader& b) {
  return leads(a, b) && a.candidate.memory <= b.candidate.memory;
}

}  // namespace

bool Leaders::may_take(const Candidate& candidate) const {
  if (std::isinf(candidate.bound)) return false;
  if (kind_ == Kind::top)
    return leaders_.size() < most_ || !is_less(leaders_.back().score, candidate.bound);
  return std::none_of(leaders_.begin(), leaders_.end(), [&](const Leader& leader) {
    return is_less(leader.score, candidate.bound) && leader.candidate.memory <= candidate.memory;
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
  }
  leaders_.insert(std::upper_bound(leaders_.begin(), leaders_.end(), fresh, leads), fresh);
  if (kind_ == Kind::top && leaders_.size() > most_) leaders_.pop_back();
}

}  // namespace orrery
