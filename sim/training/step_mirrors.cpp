#include <algorithm>

#include "sim/collectives/collective_flows.hpp"
#include "sim/training/step_draft.hpp"

namespace orrery {
namespace {

// Stage s and its mirror p - 1 - s hold the same two parts of the model if micro-batches enter at
// both ends. Their gradients are summed over both as over replicas, and with ZeRO each of the two
// updates half of its shard.
class MirrorBuilder {
 public:
  explicit MirrorBuilder(StepDraft& draft) : draft_{draft}, plan_{draft.plan} {}

  void sum_gradients() {
    for_each_pair([&](int rep, int mirror) {
      Tasks before = draft_.ready[at(rep)];
      const Tasks& others = draft_.ready[at(mirror)];
      before.insert(before.end(), others.begin(), others.end());
      const TaskId last = add_pair(Label::What::gradients, rep, mirror, before);
      draft_.ready[at(rep)] = draft_.ready[at(mirror)] = {last};
    });
  }

  void gather_weights_at_the_begin() {
    for_each_pair([&](int rep, int mirror) {
      const TaskId last = add_pair(Label::What::weights, rep, mirror, {});
      for (int end : {rep, mirror}) {
        draft_.weights_of_both[at(end)] = {last};
        for (int chunk : {0, 1}) draft_.graph.depends(first_forward(end, chunk), last);
      }
    });
  }

  void gather_weights_at_the_end(Tasks& updated) {
    for_each_pair([&](int rep, int mirror) {
      const TaskId last =
          add_pair(Label::What::weights, rep, mirror, {updated[at(rep)], updated[at(mirror)]});
      updated[at(rep)] = updated[at(mirror)] = last;
    });
  }

 private:
  template <class Visit>
  void for_each_pair(const Visit& visit) {
    for (int rep = 0; rep < draft_.rep_count(); ++rep) {
      Coordinates there = draft_.rep(rep).at;
      if (2 * there.stage >= plan_.pp) continue;
      there.stage = plan_.pp - 1 - there.stage;
      visit(rep, draft_.classes.rep_of(there));
    }
  }

  TaskId first_forward(int rep, int chunk) {
    const std::vector<PassTasks>& passes = draft_.passes[at(rep)];
    return std::find_if(
               passes.begin(), passes.end(),
               [&](const PassTasks& pass) { return pass.opens_chunk && pass.slot.chunk == chunk; })
        ->entry();
  }

  // Adds the collectives of both chunks that a pair shares, one after the other.
  TaskId add_pair(Label::What what, int rep, int mirror, const Tasks& before) {
    const TaskId first = draft_.add_after(pair_task(what, rep, mirror, 0), before);
    return draft_.add_after(pair_task(what, rep, mirror, 1), {first});
  }

  // A collective of two over a chunk's weights or gradients.
  StepTask pair_task(Label::What what, int rep, int mirror, int chunk) {
    const RankParameters& parameters = draft_.stage_cost(rep, chunk).parameters;
    const Rank here = draft_.rep(rep).rank;
    Coordinates facing = draft_.rep(rep).at;
    facing.stage = draft_.rep(mirror).at.stage;
    const Rank there = draft_.placement.rank(facing);
    const GroupShape pair = draft_.pair(here, there);
    const CollectiveCost cost = what == Label::What::weights
                                    ? draft_.traffic.mirror_weights(parameters, pair)
                                    : draft_.traffic.mirror_gradients(parameters, pair);
    StepTask task;
    task.kind = Label::Kind::transfer;
    task.what = what;
    task.stream = Stream::data;
    task.owner = rep;
    task.to_rep = mirror;
    task.chunk = chunk;
    task.duration = cost.latency;
    task.tag = cost.tag;
    task.flows = collective_flows(draft_.topology, draft_.classes, {here, there}, cost,
                                  Traffic::mirror, Traffic::mirror);
    return task;
  }

  StepDraft& draft_;
  const Plan& plan_;
};

}  // namespace

void add_mirror_weights(StepDraft& draft) {
  if (draft.plan.copies() > 1 && draft.plan.zero >= 1 && draft.overlaps_data())
    MirrorBuilder{draft}.gather_weights_at_the_begin();
}

void add_mirror_gradients(StepDraft& draft) {
  if (draft.plan.copies() > 1) MirrorBuilder{draft}.sum_gradients();
}

void add_mirror_weights_at_the_end(StepDraft& draft, Tasks& updated) {
  if (draft.plan.copies() > 1) MirrorBuilder{draft}.gather_weights_at_the_end(updated);
}

}  // namespace orrery
