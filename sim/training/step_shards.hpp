#pragma once

#include <map>
#include <tuple>

#include "sim/training/step_draft.hpp"

namespace orrery {

/// Sums gradients over several copies of shards (Sharding::dp_replicate): once the ranks of a copy
/// have reduced gradients to their shards, ranks that hold the same shard sum it.
///
///     copy 0   ranks 0 1 2 3   reduce-scatter, then all-reduce of 0 and 4, 1 and 5, ...
///     copy 1   ranks 4 5 6 7   reduce-scatter, then the same
class ShardCopies {
 public:
  explicit ShardCopies(StepDraft& draft) : draft_{draft} {}

  /// Adds the sums after `reduced`, when `members` (representatives) of one copy hold their shards
  /// of `parameters` gradients; returns `reduced` if there is one copy. `number` identifies the
  /// reduction in all copies, `slot` the pass of the gradients.
  Tasks sum(GroupKind kind, int number, std::int64_t parameters, const Slot& slot,
            const std::vector<int>& members, const Tasks& reduced);

 private:
  struct Sum {
    TaskId task;
    Tasks after;
  };

  StepDraft& draft_;
  std::map<std::tuple<GroupKind, int, int>, Sum> sums_;  // Keyed by kind, number, first member.
};

}  // namespace orrery
