#pragma once

#include <cassert>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/core/best_candidates.hpp"
#include "sim/core/worker_pool.hpp"

namespace orrery {

/// Best-first branch and bound: candidates are evaluated in the order of their lower bounds until
/// no other can be among the best. A candidate holds bounds of its objectives until it is
/// evaluated, and then the objectives themselves. The list that results does not depend on the
/// number of workers.
template <class Candidate>
class BestFirstSearch {
 public:
  using Best = BestCandidates<Candidate>;
  /// The candidate evaluated; nothing where a sharper bound proves that it cannot be among the best
  /// of `known`, which are all or some of those that were evaluated before.
  using Evaluate = std::function<std::optional<Candidate>(const Candidate&, const Best& known)>;
  /// The members of a group, none of which has objectives below the group's bounds.
  using Expand = std::function<void(const Candidate& group, const Best& known,
                                    const std::function<void(const Candidate&)>& add)>;
  /// Hears of each candidate that was evaluated, and the bounds that it had.
  using Watch = std::function<void(const Candidate& evaluated, const Candidate& bounds)>;

  /// `candidates`: by rising bounds. They have to outlive the search.
  BestFirstSearch(const std::vector<Candidate>& candidates, BestList list)
      : candidates_{candidates}, best_{list} {}

  /// Evaluates in `workers` processes, until Ctrl-C or, after the first candidate, until `is_over`.
  /// Errors: a worker failed, at which candidate (its `name()`).
  void run(int workers, const Evaluate& evaluate, const Watch& watch,
           const std::function<bool()>& is_over = {});
  /// Evaluates in this process, where all candidates are groups.
  void run_groups(const Expand& expand, const Evaluate& evaluate);
  /// Evaluates the first candidate in this process.
  void run_first(const Evaluate& evaluate);

  /// Takes a candidate that another process evaluated.
  void offer(const Candidate& evaluated) { best_.offer(evaluated); }
  const std::vector<Candidate>& ranked() const { return best_.ranked(); }

  std::int64_t done() const { return done_; }  ///< Candidates evaluated or passed over.
  std::int64_t evaluated() const { return evaluated_; }
  /// Candidates that are not done and could be among the best, and the lowest of their scores.
  struct Left {
    std::int64_t candidates = 0;
    double score = std::numeric_limits<double>::infinity();
  };
  Left left() const;

 private:
  const Candidate& candidate(std::int64_t number) const {
    return candidates_[static_cast<std::size_t>(number)];
  }
  void take(const Candidate& evaluated) {
    best_.offer(evaluated);
    ++evaluated_;
  }

  const std::vector<Candidate>& candidates_;
  Best best_;
  std::int64_t done_ = 0, evaluated_ = 0;
};

template <class Candidate>
void BestFirstSearch<Candidate>::run(int workers, const Evaluate& evaluate, const Watch& watch,
                                     const std::function<bool()>& is_over) {
  static_assert(std::is_trivially_copyable_v<Candidate>);
  const std::int64_t count = std::ssize(candidates_);
  std::int64_t next = 0;
  run_tasks(
      workers, {},
      [&]() -> std::optional<std::int64_t> {
        // A candidate that is passed over here is passed over below too: the best only get better.
        while (next < count && !best_.may_take(candidate(next))) ++next;
        if (next >= count || (next > 0 && is_over && is_over())) return std::nullopt;
        return next++;
      },
      [&](std::int64_t task) {
        Answer answer;
        if (const auto evaluated = evaluate(candidate(task), best_)) {
          best_.offer(*evaluated);  // This process is the worker's: its parent has its own list.
          answer.bytes.assign(reinterpret_cast<const char*>(&*evaluated), sizeof *evaluated);
        }
        return answer;
      },
      [&](const Outcome& outcome) {
        const Candidate& bounds = candidate(outcome.task);
        done_ = outcome.task + 1;
        // Workers are ahead: this one was sent before the best were known.
        if (!best_.may_take(bounds)) return true;
        if (!outcome.failure.empty())
          throw std::runtime_error{"a worker of the search at " + bounds.name() + ": " +
                                   outcome.failure};
        if (outcome.bytes.empty()) return true;
        Candidate evaluated;
        assert(outcome.bytes.size() == sizeof evaluated);
        std::memcpy(&evaluated, outcome.bytes.data(), sizeof evaluated);
        take(evaluated);
        watch(evaluated, bounds);
        return true;
      });
}

template <class Candidate>
void BestFirstSearch<Candidate>::run_groups(const Expand& expand, const Evaluate& evaluate) {
  const auto is_later = [](const Candidate& a, const Candidate& b) { return b.bound_before(a); };
  std::priority_queue<Candidate, std::vector<Candidate>, decltype(is_later)> members{is_later};
  const auto add = [&](const Candidate& member) { members.push(member); };
  const std::int64_t groups = std::ssize(candidates_);
  while (done_ < groups || !members.empty()) {
    if (done_ < groups && (members.empty() || candidate(done_).score <= members.top().score)) {
      const Candidate& group = candidate(done_++);
      if (best_.may_take(group)) expand(group, best_, add);
      continue;
    }
    const Candidate member = members.top();
    members.pop();
    if (!best_.may_take(member)) continue;
    if (const auto evaluated = evaluate(member, best_)) take(*evaluated);
  }
}

template <class Candidate>
void BestFirstSearch<Candidate>::run_first(const Evaluate& evaluate) {
  if (const auto evaluated = evaluate(candidate(0), best_)) take(*evaluated);
  done_ = 1;
}

template <class Candidate>
typename BestFirstSearch<Candidate>::Left BestFirstSearch<Candidate>::left() const {
  Left left;
  for (std::int64_t i = done_; i < std::ssize(candidates_); ++i) {
    if (!best_.may_take(candidate(i))) continue;
    ++left.candidates;
    left.score = std::min(left.score, candidate(i).score);
  }
  return left;
}

}  // namespace orrery
