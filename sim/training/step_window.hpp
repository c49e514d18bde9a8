#pragma once

#include "sim/engine/timeline.hpp"
#include "sim/plan/scenario.hpp"
#include "sim/training/training_step.hpp"

namespace orrery {

/// What of a timeline counts as the step.
///
/// Where stages wait for each other at the step's end: all of it. Where none does
/// (Software::optimizer_post_validation), each begins its next step as soon as its own is done, and
/// steps follow each other in the time that the longest stage takes from its first forward pass to
/// its last update (Qi et al., arXiv 2401.10241, section 5.3, measure their schedules so): from
/// that stage's begin to its end.
struct StepWindow {
  Seconds start;
  Seconds finish;
  bool of_one_stage = false;

  Seconds length() const { return finish - start; }
};

StepWindow step_window(const Scenario& scenario, const TrainingStep& step,
                       const Timeline& timeline);

/// What the window cannot be shorter than: tasks take their least times, without links that they
/// share. Of a lone stage it is the longest chain from one of its forward passes to its end, as
/// those that share links may keep it from beginning longer than from ending.
Seconds least_step_window(const Scenario& scenario, const TrainingStep& step);

}  // namespace orrery
