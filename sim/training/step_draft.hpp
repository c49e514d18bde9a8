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

namespace orrery {

using Tasks = std::vector<TaskId>;

/// Unless it is among them; whether it was not.
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

/// As they run: most passes have one, for which a list would be an allocation a pass.
using Stretches = boost::container::small_vector<Stretch, 1>;

struct PassTasks {
  Slot slot;
  Stretches buckets;         ///< One unless gradients or weights overlap.
  bool gathers = false;      ///< Weights are gathered for it, bucket by bucket.
  bool reduces = false;      ///< Its gradients are reduced, bucket by bucket.
  bool opens_chunk = false;  ///< The first forward pass of its chunk.
  bool contracted = false;   ///< One task, in which the group's collectives are not drawn.

  TaskId entry() const { return buckets.front().entry; }
  TaskId exit() const { return buckets.back().exit; }
};

/// A training step in the making: what it is built from, and what the parts of the builder leave
/// for each other. They add to it in the order of build_training_step().
struct StepDraft {
  StepDraft(const Scenario& of, const StepCost& price, const StepTraffic& between, const Cast& who,
            const Topology& wires);

  int role_count() const { return static_cast<int>(cast.roles().size()); }
  const Role& role(int index) const { return cast.roles()[static_cast<std::size_t>(index)]; }
  int virtual_stage(int role_index, int chunk) const {
    return plan.virtual_stage(role(role_index).at.stage, chunk);
  }
  const StageCost& stage_cost(int role_index, int chunk) const {
    return cost.stages[static_cast<std::size_t>(virtual_stage(role_index, chunk))];
  }
  /// What its pass of a micro-batch costs.
  const StageCost& pass_cost(int role_index, const Slot& slot) const {
    return cost.stage(virtual_stage(role_index, slot.chunk), placement.draw(role(role_index).rank),
                      slot.microbatch);
  }
  GroupShape pair(Rank a, Rank b) const { return pair_shape(placement, topology, a, b); }
  /// Whether gradients (and weights) travel beside passes.
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
  /// Where in `passes` a role's slot is.
  int& index_of(int role_index, const Slot& slot);
  const PassTasks& pass_of(int role_index, const Slot& slot);

  /// Calls visit(a member, roles of all members) once for each group of a kind.
  template <class Visit>
  void for_each_group(GroupKind kind, const Visit& visit) const;

  const Scenario& scenario;
  const Plan& plan;
  const StepCost& cost;
  const StepTraffic& traffic;
  const Cast& cast;
  const Placement& placement;
  const Topology& topology;

  TaskGraph graph;
  Labels labels;
  OverlappedPasses overlapped;
  std::vector<std::vector<PassTasks>> passes;  ///< By role, in the schedule's order.
  std::vector<Tasks> ready;  ///< By role: what must finish before the step can be closed.
  /// By role, of plans with two copies: what must finish before weights may be gathered from other
  /// replicas.
  std::vector<Tasks> weights_of_both;

 private:
  std::vector<std::vector<int>> slot_index_;
};

/// Every role's forward and backward passes: a task each where contracted, else a chain of kernels
/// and tensor-parallel collectives.
void add_passes(StepDraft& draft, Contraction contraction);
/// Weights and gradients of every pass, where they live in shards (ZeRO-2 and 3).
void add_shard_traffic(StepDraft& draft);
/// Activations and their gradients from stage to stage.
void add_transfers(StepDraft& draft);
/// Plans with two copies of the model: a stage's weights live on two ranks of a pipeline. Optimizer
/// shards of both are exchanged at the step's begin, where weights travel there at all; ...
void add_mirror_weights(StepDraft& draft);
/// ... and the gradients of both are summed, after those of each one's replicas.
void add_mirror_gradients(StepDraft& draft);
/// Where weights do not travel beside passes: the exchange after the optimizer. `updated`: by role.
void add_mirror_weights_at_the_end(StepDraft& draft, Tasks& updated);
/// The all-gather of weights beside the first forward passes (ZeRO, overlapped).
void add_weight_prefetch(StepDraft& draft);
/// Gradients over the data-parallel groups, beside the last backward passes or after them.
void add_gradient_reduction(StepDraft& draft);
/// Tied embedding, gradient norm, optimizer, and the all-gather of weights where not overlapped.
void add_closing(StepDraft& draft);

template <class Visit>
void StepDraft::for_each_group(GroupKind kind, const Visit& visit) const {
  std::vector<bool> seen(cast.roles().size(), false);
  for (int index = 0; index < role_count(); ++index) {
    const Rank rank = role(index).rank;
    const std::vector<int> members = roles_in(cast, placement.group(kind, rank));
    // Groups of one class share the smallest role.
    if (seen[static_cast<std::size_t>(members.front())]) continue;
    seen[static_cast<std::size_t>(members.front())] = true;
    visit(rank, members);
  }
}

}  // namespace orrery
