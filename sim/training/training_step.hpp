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

/// Meaning of a task of a training step, for results and traces; the engine does not use it. A task
/// refers to its label by Task::note, the index in the step's labels.
struct Label {
  enum class Kind : std::uint8_t {
    compute,   ///< Lasts its duration.
    transfer,  ///< A latency, then flows.
    join,      ///< Takes no time; synchronizes several ranks.
  };
  enum class What : std::uint8_t {
    forward,
    backward,
    weight_gradient,  ///< Completes a backward pass of inputs_only.
    optimizer,
    collective,  ///< A collective of `group` inside a pass.
    transfer,
    gradients,
    weights,
    norm
  };

  Kind kind = Kind::compute;
  What what = What::forward;
  GroupKind group = GroupKind::tensor;  ///< Group of a collective, gradients or weights.
  bool combine = false;                 ///< Expert collectives: combine, else dispatch.
  bool backward = false;                ///< Direction of a transfer or a pass's collective.
  bool inputs_only = false;             ///< Backward pass without its weight gradients.
  Tag tag = Tag::default_value;         ///< Provenance of a transfer's or the optimizer's cost.
  int to_rep = -1;                      ///< Receiver of a transfer, or other end of a pair.
  int chunk = 0;
  int microbatch = -1;  ///< -1: belongs to the whole step.
  /// Chunk and micro-batch of the other of two passes that run together. If both are one task,
  /// `what`, `chunk` and `microbatch` are the forward pass's.
  int with_chunk = 0, with_microbatch = -1;
  const PassCost* cost = nullptr;    ///< Cost of a contracted pass.
  const Segment* segment = nullptr;  ///< Segment of an expanded pass that the task computes.
};

using Labels = std::vector<Label>;

/// A task under construction, with its label. Its owner is the representative that executes it; a
/// collective's is its first member.
struct StepTask : Task, Label {};

/// Adds the task to the graph and its label to the table.
inline TaskId add_labelled(TaskGraph& graph, Labels& labels, StepTask&& task) {
  task.note = static_cast<std::int32_t>(labels.size());
  labels.push_back(task);
  return graph.add(std::move(task));
}

/// One training step as a task graph, with everything that it refers to.
struct TrainingStep {
  std::shared_ptr<const StepCost> cost;
  RankClasses classes;
  TaskGraph graph;
  bool contracted = true;
  OverlappedPasses overlapped = {};  ///< Costs of tasks with two passes.
  Labels labels = {};                ///< Indexed by Task::note.

  const Label& label(TaskId id) const {
    return labels[static_cast<std::size_t>(graph.task(id).note)];
  }
};

/// The cost of the pass that a task belongs to; of two passes, that of its label.
const PassCost& pass_of(const Plan& plan, const TrainingStep& step, TaskId id);
/// The cost of the backward pass, if two passes run together.
const PassCost& overlapped_pass(const Plan& plan, const TrainingStep& step, TaskId id);

/// Builds the step that `scenario` describes. All costs are in `cost` and `traffic`; this adds
/// dependencies and routes:
///
///     [weights gathered]            with ZeRO and overlap: during the first forward passes
///     forward / backward passes     in the schedule's order, transfers between the stages;
///                                   with ZeRO-2 and 3, gathers and reductions of shards
///     gradients reduced             during the last backward pass, or after it
///     tied embedding, gradient norm
///     optimizer
///     [weights gathered]            with ZeRO, if not overlapped
///
/// Passes that are not contracted have every collective as a task with flows.
TrainingStep build_training_step(const Scenario& scenario, std::shared_ptr<const StepCost> cost,
                                 const StepTraffic& traffic, const RankClasses& classes,
                                 const Topology& topology, Contraction contraction);

/// Checks a step's graph; returns the first problem in words, or "". There is no cycle; every
/// duration, byte count and rate is finite and positive where it must be; every flow has a route;
/// every representative runs each chunk's forward and backward pass of each micro-batch, the
/// forward first; every pass between two stages receives exactly one transfer, and as many bytes
/// return as gradients as are sent forward.
std::string verify(const TrainingStep& step, const Plan& plan);

}  // namespace orrery
