#pragma once

#include <string>

#include "sim/engine/graph/timeline.hpp"
#include "sim/input/scenario/scenario.hpp"
#include "sim/work/training/training_step.hpp"

namespace orrery {

/// A step as a drawing (SVG): a row a rank, its passes in a wide lane and what it sends in narrow
/// ones below, over time. At most 32 of those that were simulated, stage by stage.
///
/// What is narrower than a pixel is not lost: each column of pixels shows the shares of time that
/// its kinds of work have in it.
struct TimelineChart {
  std::string svg;
  int ranks = 0;  ///< Drawn.
};
TimelineChart timeline_chart(const TrainingStep& step, const Timeline& timeline,
                             const Scenario& scenario);

}  // namespace orrery
