#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/task_graph.hpp"
#include "sim/layers/pass_cost.hpp"

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

}  // namespace orrery
