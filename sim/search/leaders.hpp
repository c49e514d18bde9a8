#pragma once

#include <vector>

#include "sim/search/candidate.hpp"

namespace orrery {

struct Leader {
  Candidate candidate;
  Seconds time;
  double score = 0.0;
};

/// The plans that lead so far: the best few, the best of each of the best few layouts, or all that
/// no other beats in score and memory. Of equal scores the faster leads, of those the smaller, and
/// of those the one that is enumerated first; what differs in the twelfth digit alone is equal.
class Leaders {
 public:
  enum class Kind { top, layouts, front };
  Leaders(Kind kind, int most) : kind_{kind}, most_{static_cast<std::size_t>(most)} {}

  /// Whether a plan can enter, whatever its score is within its bound. Once false, always false.
  bool may_take(const Candidate& candidate) const;
  void offer(const Candidate& candidate, Seconds time, double score);
  Kind kind() const { return kind_; }
  /// Best first.
  const std::vector<Leader>& ranked() const { return leaders_; }

 private:
  std::vector<Leader>::const_iterator of_layout(std::int32_t layout) const;

  Kind kind_;
  std::size_t most_;
  std::vector<Leader> leaders_;
};

}  // namespace orrery
