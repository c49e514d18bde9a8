#pragma once

#include <array>
#include <vector>

#include "sim/core/units.hpp"
#include "sim/plan/placement.hpp"

namespace orrery {

/// Which ranks of an expert group wait for each other where a collective begins: those of the same
/// tensor or context group, and in the expert group all. Groups that reach into several expert
/// groups meet there ranks whose rows are alike.
class ExpertMeetings {
 public:
  /// All ranks wait for all, in every collective.
  ExpertMeetings() = default;
  explicit ExpertMeetings(const Placement& placement);

  /// By place in the expert group: when the last rank that it waits for comes, where the rank at
  /// place i comes at `ready[i]`.
  std::vector<Seconds> begin(GroupKind kind, const std::vector<Seconds>& ready) const;

 private:
  /// By kind: the first place that a place waits for. Empty: the first of all.
  std::array<std::vector<int>, group_kinds> first_;
};

}  // namespace orrery
