#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <vector>

namespace orrery {

/// The contents of a list of the best candidates.
struct BestList {
  enum class Kind {
    top,         ///< The best few.
    per_layout,  ///< The best of each of the best few layouts.
    front        ///< The Pareto front: all that no other beats in both objectives.
  };
  Kind kind = Kind::per_layout;
  int most = 10;  ///< A front has as many as it has.

  bool is_front() const { return kind == Kind::front; }
  bool is_per_layout() const { return kind == Kind::per_layout; }
};

/// The figures that decide a candidate's place in a list. Less is better in both objectives.
struct Scored {
  double score = 0.0;       ///< Infinite: the candidate is never listed.
  double second = 0.0;      ///< The other objective of a front; it decides between equal scores.
  std::int64_t number = 0;  ///< The lowest comes first of equals.
  std::int32_t layout = 0;

  double second_objective() const { return second; }
  bool scores_below(const Scored& other) const { return score < other.score; }
  /// A total order, which agrees with scores_below().
  bool ranks_before(const Scored& other) const {
    return std::tie(score, second, number) < std::tie(other.score, other.second, other.number);
  }
};

/// The best of all candidates that were offered. A `Candidate` has `score`, `layout` and the three
/// functions of a Scored.
template <class Candidate>
class BestCandidates {
 public:
  explicit BestCandidates(BestList list) : list_{list} {}

  /// True if a candidate can be listed whose objectives are not below those of `bound`. Once false,
  /// always false.
  bool may_take(const Candidate& bound) const {
    if (std::isinf(bound.score)) return false;
    if (list_.is_front())
      return std::none_of(ranked_.begin(), ranked_.end(), [&](const Candidate& listed) {
        return listed.scores_below(bound) && listed.second_objective() <= bound.second_objective();
      });
    // A layout that is listed has to be beaten; of one that is not, no candidate was good enough.
    if (const auto own = of_layout(bound.layout); own != ranked_.end())
      return !own->scores_below(bound);
    return std::ssize(ranked_) < list_.most || !ranked_.back().scores_below(bound);
  }

  void offer(const Candidate& candidate) {
    if (std::isinf(candidate.score)) return;
    if (list_.is_front()) {
      if (std::any_of(ranked_.begin(), ranked_.end(),
                      [&](const Candidate& listed) { return beats(listed, candidate); }))
        return;
      std::erase_if(ranked_, [&](const Candidate& listed) { return beats(candidate, listed); });
    } else if (const auto own = of_layout(candidate.layout); own != ranked_.end()) {
      if (own->ranks_before(candidate)) return;
      ranked_.erase(own);
    }
    ranked_.insert(std::upper_bound(ranked_.begin(), ranked_.end(), candidate,
                                    [](const auto& a, const auto& b) { return a.ranks_before(b); }),
                   candidate);
    if (!list_.is_front() && std::ssize(ranked_) > list_.most) ranked_.pop_back();
  }

  const std::vector<Candidate>& ranked() const { return ranked_; }  ///< Best first.

 private:
  static bool beats(const Candidate& a, const Candidate& b) {
    return a.ranks_before(b) && a.second_objective() <= b.second_objective();
  }
  auto of_layout(std::int32_t layout) const {
    if (!list_.is_per_layout()) return ranked_.end();
    return std::find_if(ranked_.begin(), ranked_.end(),
                        [&](const Candidate& listed) { return listed.layout == layout; });
  }

  BestList list_;
  std::vector<Candidate> ranked_;
};

}  // namespace orrery
