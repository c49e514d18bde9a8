#pragma once

#include <array>
#include <vector>

#include "sim/training/training_step.hpp"

namespace orrery {

/// What a task's fields leave to its neighbours in the graph: which transfers a pass waits for, and
/// who else takes part in a collective.
class TaskRelations {
 public:
  /// `step` must outlive it.
  explicit TaskRelations(const TrainingStep& step);

  /// The transfers between stages that a pass waits for: at most one, of two passes that run
  /// together two.
  const std::vector<int>& fed_by(int task) const { return fed_by_[static_cast<std::size_t>(task)]; }

  /// Roles in the group of a kind whose collectives are noted at role `leader`.
  const std::vector<int>& members(GroupKind kind, int leader) const {
    return members_[static_cast<std::size_t>(kind)][static_cast<std::size_t>(leader)];
  }
  /// Roles that reduce gradients or gather weights in `task`: its data-parallel group, or a pair of
  /// stages that hold the same parameters (a tied embedding, a stage and its mirror).
  std::vector<int> data_members(int task) const;

 private:
  const TrainingStep& step_;
  std::vector<std::vector<int>> fed_by_;
  std::array<std::vector<std::vector<int>>, group_kinds> members_;  ///< By kind and leader.
};

}  // namespace orrery
