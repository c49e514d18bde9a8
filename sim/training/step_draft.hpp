#pragma once

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/collectives/collective_flows.hpp"
#include "sim/core/units.hpp"
#include "sim/engine/task_graph.hpp"
#include "sim/layers/overlapped_passes.hpp"
#include "sim/layers/pass_cost.hpp"
#include "sim/layers/step_traffic.hpp"
#include "sim/pipeline/schedule.hpp"
#include "sim/plan/placement.hpp"
#include "sim/plan/scenario.hpp"
#include "sim/training/contraction.hpp"
#include "sim/training/training_step.hpp"

namespace orrery {

using Tasks = std::vector<TaskId>;

/// Appends `task` unless it is in `tasks`; returns true if it was not.
inline bool add_new(Tasks& tasks, TaskId task) {
  if (std::find(tasks.begin(), tasks.end(), task) != tasks.end()) return false;
  tasks.push_back(task);
  return true;
}

/// First and last task of a pass, or of one bucket of it.
struct Stretch {
  TaskId entry;
  TaskId exit;
};

/// Stretches in execution order. Most passes have one, which needs no allocation.
using Stretches = boost::container::small_vector<Stretch, 1>;

struct PassTasks {
  Slot slot;
  Stretches buckets;         ///< One unless gradients or weights overlap.
  bool gathers = false;      ///< Weights are gathered for it, bucket by bucket.
  bool reduces = false;      ///< Its gradients are reduced, bucket by bucket.
  bool opens_chunk = false;  ///< The first forward pass of its chunk.
  bool contracted = false;   ///< One task, which includes the group's collectives.

  TaskId entry() const { return buckets.front().entry; }
  TaskId exit() const { return buckets.back().exit; }
};

/// A training step under construction: its inputs, and state that the parts of the builder pass to
/// each other. They add to it in the order of build_training_step().
struct StepDraft {
  StepDraft(const Scenario& of, const StepCost& price, const StepTraffic& between,
            const RankClasses& ranks, const Topology& wires);

  int rep_count() const { return static_cast<int>(classes.reps().size()); }
  const RankClass& rep(int index) const { return classes.reps()[static_cast<std::size_t>(index)]; }
  int virtual_stage(int rep_index, int chunk) const {
    return plan.virtual_stage(rep(rep_index).at.stage, chunk);
  }
  const StageCost& stage_cost(int rep_index, int chunk) const {
    return cost.stages[static_cast<std::size_t>(virtual_stage(rep_index, chunk))];
  }
  /// Cost of the pass, for the micro-batch and routing sample of the representative.
  const StageCost& pass_cost(int rep_index, const Slot& slot) const {
    return cost.stage(virtual_stage(rep_index, slot.chunk), placement.draw(rep(rep_index).rank),
                      slot.microbatch);
  }
  GroupShape pair(Rank a, Rank b) const { return pair_shape(placement, topology, a, b); }
  /// True if gradients (and weights) are sent while passes run.
  bool overlaps_data() const {
    return plan.dp_overlap &&
           (traffic.shapes().data.ranks > 1 || traffic.shapes().expert_data.ranks > 1);
  }

  void reserve(std::size_t tasks) {
    graph.reserve(tasks);
    labels.reserve(tasks);
  }
  TaskId add(StepTask&& task) { return add_labelled(graph, labels, std::move(task)); }
  TaskId add_after(StepTask&& task, std::span<const TaskId> before) {
    const TaskId id = add(std::move(task));
    for (TaskId earlier : before) graph.depends(id, earlier);
    return id;
  }
  TaskId add_after(StepTask&& task, TaskId before) {
    const TaskId id = add(std::move(task));
    graph.depends(id, before);
    return id;
  }
  /// Index of a slot in the representative's `passes`.
  int& index_of(int rep_index, const Slot& slot);
  const PassTasks& pass_of(int rep_index, const Slot& slot);

  /// Calls visit(a member, representatives of all members) once for each group of a kind.
  template <class Visit>
  void for_each_group(GroupKind kind, const Visit& visit) const;

  const Scenario& scenario;
  const Plan& plan;
  const StepCost& cost;
  const StepTraffic& traffic;
  const RankClasses& classes;
  const Placement& placement;
  const Topology& topology;

  TaskGraph graph;
  Labels labels;
  OverlappedPasses overlapped;
  std::vector<std::vector<PassTasks>> passes;  ///< Indexed by representative, in schedule order.
  std::vector<Tasks> ready;  ///< Tasks of each representative that precede the optimizer.
  /// In plans with two copies of the model, the tasks of each representative that precede the
  /// gather of weights from other replicas.
  std::vector<Tasks> weights_of_both;

 private:
  std::vector<std::vector<int>> slot_index_;
};

/// Adds all forward and backward passes: a task each if contracted, else a chain of kernels and
/// collectives.
void add_passes(StepDraft& draft, Contraction contraction);
/// Adds gathers and reductions of weights and gradients that are kept in shards (ZeRO-2 and 3).
void add_shard_traffic(StepDraft& draft);
/// Adds transfers of activations and their gradients between stages.
void add_transfers(StepDraft& draft);
/// Plans with two copies of the model hold a stage's weights on two ranks of a pipeline. Adds the
/// exchange of their optimizer shards at the step's begin, if weights are gathered there.
void add_mirror_weights(StepDraft& draft);
/// Adds the sum of both copies' gradients, after the reductions over each copy's replicas.
void add_mirror_gradients(StepDraft& draft);
/// Adds the exchange after the optimizer, without overlap. `updated`: indexed by representative.
void add_mirror_weights_at_the_end(StepDraft& draft, Tasks& updated);
/// Adds the all-gather of weights that overlaps the first forward passes (ZeRO, overlapped).
void add_weight_prefetch(StepDraft& draft);
/// Adds gradient reductions over data-parallel groups, overlapping the last backward passes or not.
void add_gradient_reduction(StepDraft& draft);
/// Adds tied embedding, gradient norm, optimizer, and the all-gather of weights if not overlapped.
void add_closing(StepDraft& draft);

template <class Visit>
void StepDraft::for_each_group(GroupKind kind, const Visit& visit) const {
  std::vector<bool> seen(classes.reps().size(), false);
  for (int index = 0; index < rep_count(); ++index) {
    const Rank rank = rep(index).rank;
    const std::vector<int> members = reps_in(classes, placement.group(kind, rank));
    // Groups of one class have the same first member.
    if (seen[static_cast<std::size_t>(members.front())]) continue;
    seen[static_cast<std::size_t>(members.front())] = true;
    visit(rank, members);
  }
}

}  // namespace orrery
