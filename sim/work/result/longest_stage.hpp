#pragma once

#include <optional>

#include "sim/engine/graph/timeline.hpp"
#include "sim/work/training/training_step.hpp"

namespace orrery {

/// Where no stage waits for another at the step's end (Software::optimizer_post_validation), each
/// begins its next step as soon as its own is done, and steps follow each other in the time that
/// the longest stage takes from its first forward pass to its last update (Qi et al., arXiv
/// 2401.10241, section 5.3, measure their schedules so): that stage's begin and end. Nothing where
/// stages wait.
std::optional<Span> longest_stage(const Scenario& scenario, const TrainingStep& step,
                                  const Timeline& timeline);

}  // namespace orrery
