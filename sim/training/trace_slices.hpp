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

/// What a rank does at once: a line each, and on one line nothing overlaps. Stage transfers have
/// one for each direction, and gradients one for dense and one for expert layers, as both may be on
/// their way together.
enum class Track {
  compute,
  tensor,
  context,
  expert,
  send_forward,
  send_backward,
  data,
  expert_data,
  experts,  ///< One for each rank of an expert group that a role stands for, where they differ.
};
template <>
inline const std::vector<std::string> enum_words<Track>{
    "compute",         "tensor parallel",       "context parallel",
    "expert parallel", "pipeline send forward", "pipeline send backward",
    "data parallel",   "expert data parallel",  "experts of rank "};
inline constexpr int tracks = 9;

/// A stretch of time on a rank's track, in whole nanoseconds from the beginning of the step.
struct Slice {
  int role = 0;
  Track track = Track::compute;
  std::int64_t start_ns = 0;
  std::int64_t finish_ns = 0;
  std::string name;           ///< "F 3", "B 3 chunk 1", "gradients"
  std::string_view category;  ///< "forward", "transfer", ...
  std::vector<std::pair<std::string_view, double>> facts;
  int sends = -1;                  ///< Id of the arrow that leaves it; -1: none.
  std::vector<int> receives = {};  ///< Ids of the arrows that end at it.
  int of_rank = -1;                ///< Of Track::experts: whose experts.
};

/// Puts slices in the order in which viewers read them: by role as in `roles`, then track, then
/// time, what encloses before what it encloses. An arrow with one end
/// is taken away.
void arrange(std::vector<Slice>& slices, const std::vector<int>& roles);

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

/// Roles as they are drawn: stage by stage, then by their places in the other groups.
void sort_by_place(std::vector<int>& roles, const Cast& cast);

struct SliceChoice {
  std::vector<int> roles;      ///< Whom to draw.
  bool inside_passes = false;  ///< Kernels and collectives of a pass that is one task.
  std::int64_t most = 0;       ///< Slices to keep; more are counted only.
};

struct Slices {
  std::vector<Slice> slices;  ///< As arrange() leaves them.
  std::int64_t count = 0;     ///< With those that were not kept.
};

/// A step as slices. A collective is drawn on every member's track.
///
/// A pass that is one task is one slice. Where collectives are tasks of their own, a pass is a
/// slice that encloses its kernels, and the collectives lie beside it on the tensor track. With
/// `inside_passes` a contracted pass is drawn likewise from its PassCost, for micro-batches 0 and 1
/// alone: each later one is the same kernels again, and there may be thousands.
Slices slices_of(const TrainingStep& step, const Timeline& timeline, const Scenario& scenario,
                 const SliceChoice& choice);

}  // namespace orrery
