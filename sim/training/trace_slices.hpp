#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/core/enum_words.hpp"
#include "sim/engine/simulation.hpp"
#include "sim/plan/scenario.hpp"
#include "sim/training/training_step.hpp"

namespace orrery {

/// Tracks of a rank's concurrent work; slices of one track do not overlap. Transfers between stages
/// have a track for each direction, and gradients one for dense and one for expert layers, as both
/// may be sent concurrently.
enum class Track {
  compute,
  tensor,
  context,
  expert,
  send_forward,
  send_backward,
  data,
  expert_data,
  experts,  ///< One for each rank of a represented expert group, if they differ.
};
template <>
inline const std::vector<std::string> enum_words<Track>{
    "compute",         "tensor parallel",       "context parallel",
    "expert parallel", "pipeline send forward", "pipeline send backward",
    "data parallel",   "expert data parallel",  "experts of rank "};
inline constexpr int tracks = 9;

/// A stretch of time on a rank's track, in whole nanoseconds from the beginning of the step.
struct Slice {
  int rep = 0;
  Track track = Track::compute;
  std::int64_t start_ns = 0;
  std::int64_t finish_ns = 0;
  std::string name;           ///< "F 3", "B 3 chunk 1", "gradients"
  std::string_view category;  ///< "forward", "transfer", ...
  std::vector<std::pair<std::string_view, double>> facts;
  int sends = -1;                  ///< Id of the arrow that leaves it; -1: none.
  std::vector<int> receives = {};  ///< Ids of the arrows that end at it.
  int of_rank = -1;                ///< Track::experts: rank that holds the experts.
};

/// Sorts slices as viewers read them: in the order of `reps`, then by track and time, enclosing
/// slices before enclosed ones. Removes arrows with one end.
void arrange(std::vector<Slice>& slices, const std::vector<int>& reps);

/// Relations between tasks that labels do not hold: the transfers that a pass waits for, and the
/// members of a collective.
class TaskRelations {
 public:
  /// The step must outlive this object.
  explicit TaskRelations(const TrainingStep& step);

  /// The transfers between stages that a task waits for: at most one for each of its passes.
  const std::vector<int>& fed_by(int task) const { return fed_by_[static_cast<std::size_t>(task)]; }

  /// Representatives in the group of a kind whose first member, which owns its tasks, is `leader`.
  const std::vector<int>& members(GroupKind kind, int leader) const {
    return members_[static_cast<std::size_t>(kind)][static_cast<std::size_t>(leader)];
  }
  /// Representatives that reduce gradients or gather weights in `task`: its data-parallel group, or
  /// two stages that hold the same parameters (a tied embedding, a stage and its mirror).
  std::vector<int> data_members(int task) const;

 private:
  const TrainingStep& step_;
  std::vector<std::vector<int>> fed_by_;
  std::array<std::vector<std::vector<int>>, group_kinds> members_;  ///< Indexed by kind and leader.
};

/// Sorts representatives as traces show them: by stage, then by coordinates in the other groups.
void sort_by_place(std::vector<int>& reps, const RankClasses& classes);

struct SliceChoice {
  std::vector<int> reps;       ///< Representatives to show.
  bool inside_passes = false;  ///< Show kernels and collectives of contracted passes.
  std::int64_t most = 0;       ///< Slices to keep; more are counted only.
};

struct Slices {
  std::vector<Slice> slices;  ///< Sorted by arrange().
  std::int64_t count = 0;     ///< Number including slices that were not kept.
};

/// A step as slices. A collective is shown on every member's track.
///
/// A contracted pass is one slice. An expanded pass is a slice that encloses its kernels, with the
/// collectives on their own tracks. With `inside_passes` a contracted pass is shown like that from
/// its PassCost, for micro-batches 0 and 1 only: later ones repeat the same kernels, and there may
/// be thousands.
Slices slices_of(const TrainingStep& step, const Timeline& timeline, const Scenario& scenario,
                 const SliceChoice& choice);

}  // namespace orrery
