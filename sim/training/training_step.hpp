#pragma once

#include <memory>
#include <string>

#include "sim/cluster/topology.hpp"
#include "sim/engine/task_graph.hpp"
#include "sim/layers/overlapped_passes.hpp"
#include "sim/layers/pass_cost.hpp"
#include "sim/layers/step_cost.hpp"
#include "sim/layers/step_traffic.hpp"
#include "sim/plan/rank_classes.hpp"
#include "sim/plan/scenario.hpp"
#include "sim/training/contraction.hpp"

namespace orrery {

/// What a task of a training step is. Results and traces ask for it, the engine does not: a task
/// names its label by Task::note, its place among the step's labels.
struct Label {
  enum class Kind : std::uint8_t {
    compute,   ///< Lasts its duration.
    transfer,  ///< A latency, then flows.
    join,      ///< Takes no time: where several ranks wait for each other.
  };
  enum class What : std::uint8_t {
    forward,
    backward,
    weight_gradient,  ///< What a backward pass of inputs_only left.
    optimizer,
    collective,  ///< Of `group`, inside a pass.
    transfer,
    gradients,
    weights,
    norm
  };

  Kind kind = Kind::compute;
  What what = What::forward;
  GroupKind group = GroupKind::tensor;  ///< Of a collective, gradients or weights.
  bool combine = false;                 ///< Of an expert group's collective: else dispatch.
  bool backward = false;         ///< Of a collective in a pass and of a transfer: its direction.
  bool inputs_only = false;      ///< Of a backward pass: without its weight gradients.
  Tag tag = Tag::default_value;  ///< Of a transfer or the optimizer: what its price rests on.
  int to_role = -1;              ///< Of a transfer between stages, or of a pair: the other end.
  int chunk = 0;
  int microbatch = -1;  ///< -1: belongs to the whole step.
  /// Of a pass that runs together with one of another micro-batch: the other's. Where both are one
  /// task, `what`, `chunk` and `microbatch` are the forward pass's.
  int with_chunk = 0, with_microbatch = -1;
  const PassCost* cost = nullptr;  ///< compute: what it consists of, where it stands for a chain.
  const Segment* segment =
      nullptr;  ///< compute: the stretch of a pass that it is, where it is one.
};

using Labels = std::vector<Label>;

/// A task in the making, with its label. Its owner is the role that does it, of a collective its
/// first member.
struct StepTask : Task, Label {};

/// Adds the task to the graph and its label to the table.
inline TaskId add_labelled(TaskGraph& graph, Labels& labels, StepTask&& task) {
  task.note = static_cast<std::int32_t>(labels.size());
  labels.push_back(task);
  return graph.add(std::move(task));
}

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

/// What is wrong with a step's graph, in words, or "". Checked: no cycle; every duration, byte
/// count and rate is finite and positive where it must be; every flow has a way; every role runs
/// each chunk's forward and backward pass of each micro-batch, the forward first; every pass
/// between two stages is fed by exactly one transfer, and what is sent forward comes back as
/// gradients, byte for byte.
std::string verify(const TrainingStep& step, const Plan& plan);

}  // namespace orrery
