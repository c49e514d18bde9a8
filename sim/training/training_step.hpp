#pragma once

#include <memory>

#include "sim/cluster/topology.hpp"
#include "sim/layers/overlapped_passes.hpp"
#include "sim/layers/step_cost.hpp"
#include "sim/layers/step_traffic.hpp"
#include "sim/plan/cast.hpp"
#include "sim/plan/scenario.hpp"
#include "sim/training/contraction.hpp"
#include "sim/training/label.hpp"

namespace orrery {

/// One training step as tasks, with everything that they refer to.
struct TrainingStep {
  std::shared_ptr<const StepCost> cost;
  Cast cast;
  TaskGraph graph;
  bool contracted = true;
  OverlappedPasses overlapped = {};  ///< What tasks of two passes consist of.
  Labels labels = {};                ///< By Task::note.

  const Label& label(TaskId id) const {
    return labels[static_cast<std::size_t>(graph.task(id).note)];
  }
};

/// The pass that a task is a stretch of. Of a task of two passes that run together, the one that
/// its label is named after.
const PassCost& pass_of(const Plan& plan, const TrainingStep& step, TaskId id);
/// The backward pass of two that run together: the other one.
const PassCost& pass_beside(const Plan& plan, const TrainingStep& step, TaskId id);

/// Builds the step that `scenario` describes. All prices are in `cost` and `traffic`; what is built
/// here is who waits for whom, and over which links it goes:
///
///     [weights gathered]            with ZeRO and overlap: beside the first forward passes
///     forward / backward passes     in the schedule's order, transfers between the stages;
///                                   with ZeRO-2 and 3, gathers and reductions of shards
///     gradients reduced             beside the last backward pass, or after it
///     tied embedding, gradient norm
///     optimizer
///     [weights gathered]            with ZeRO, where not overlapped
///
/// Passes that are not contracted have every collective as a task with flows.
TrainingStep build_training_step(const Scenario& scenario, std::shared_ptr<const StepCost> cost,
                                 const StepTraffic& traffic, const Cast& cast,
                                 const Topology& topology, Contraction contraction);

}  // namespace orrery
