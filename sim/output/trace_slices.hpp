#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/graph/training_step.hpp"
#include "sim/input/scenario.hpp"
#include "sim/result/timeline.hpp"

namespace orrery {

/// What a rank does at once: a line each, and on one line nothing overlaps. Stage transfers have one
/// for each direction, as both may be on their way together.
enum class Track { compute, tensor, send_forward, send_backward, data };

/// A stretch of time on a rank's track, in whole nanoseconds from the beginning of the step.
struct Slice {
  int role = 0;
  Track track = Track::compute;
  std::int64_t start_ns = 0;
  std::int64_t finish_ns = 0;
  std::string name;           ///< "F 3", "B 3 chunk 1", "gradients"
  std::string_view category;  ///< "forward", "transfer", ...
  std::vector<std::pair<std::string_view, double>> facts;
  int sends = -1;     ///< Id of the arrow that leaves it; -1: none.
  int receives = -1;  ///< Id of the arrow that ends at it.
};

struct SliceChoice {
  std::vector<int> roles;      ///< Whom to draw.
  bool inside_passes = false;  ///< Kernels and collectives of a pass that is one task.
  std::int64_t most = 0;       ///< Slices to keep; more are counted only.
};

struct Slices {
  /// By role in the order asked for, then track, then time; what encloses before what it encloses.
  std::vector<Slice> slices;
  std::int64_t count = 0;  ///< With those that were not kept.
};

/// A step as slices. A collective is drawn on every member's track.
///
/// A pass that is one task is one slice. Where collectives are tasks of their own, a pass is a slice
/// that encloses its kernels, and the collectives lie beside it on the tensor track. With
/// `inside_passes` a contracted pass is drawn likewise from its PassCost, for micro-batches 0 and 1
/// alone: each later one is the same kernels again, and there may be thousands.
Slices slices_of(const TrainingStep& step, const Timeline& timeline, const Scenario& scenario,
                 const SliceChoice& choice);

}  // namespace orrery
