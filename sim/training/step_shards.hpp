#pragma once

#include <map>
#include <tuple>

#include "sim/training/step_draft.hpp"

namespace orrery {

/// Shards that are kept in several copies (PlanChoices::dp_replicate): once the ranks of a copy
/// have reduced gradients to their shards, those that hold the same shard sum it up.
///
///     copy 0   ranks 0 1 2 3   reduce-scatter, then all-reduce of 0 and 4, 1 and 5, ...
///     copy 1   ranks 4 5 6 7   reduce-scatter, then the same
class ShardCopies {
 public:
  explicit ShardCopies(StepDraft& draft) : draft_{draft} {}

  /// What follows `reduced`, after which `members` (roles) of one copy hold their shards of the
  /// gradients of `parameters`; `reduced` itself where there is one copy. `number`: of the
  /// reduction, the same for all copies. `slot`: of the pass whose gradients they are.
  Tasks sum(GroupKind kind, int number, std::int64_t parameters, const Slot& slot,
            const std::vector<int>& members, const Tasks& reduced);

 private:
  struct Sum {
    TaskId task;
    Tasks after;
  };

  StepDraft& draft_;
  std::map<std::tuple<GroupKind, int, int>, Sum> sums_;  // By number and first role.
};

}  // namespace orrery
