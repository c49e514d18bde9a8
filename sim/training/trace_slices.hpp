#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/timeline.hpp"
#include "sim/plan/scenario.hpp"
#include "sim/training/slice.hpp"
#include "sim/training/training_step.hpp"

namespace orrery {

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
