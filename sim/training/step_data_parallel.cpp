#include <map>
#include <tuple>

#include "sim/training/step_draft.hpp"
#include "sim/training/step_shards.hpp"

namespace orrery {
namespace {

// Ranks that hold the same parameters: dense ones, or experts. Dense gradients are sent before the
// experts' if not overlapped; while passes run, both are sent concurrently.
struct Copies {
  GroupKind kind;
  Rank member;
  const std::vector<int>& members;  ///< Representatives.
  bool alone = false;               ///< One rank, whose shards have copies on other ranks.

  int leader() const { return members.front(); }
};

class DataParallelBuilder {
 public:
  explicit DataParallelBuilder(StepDraft& draft)
      : draft_{draft}, plan_{draft.plan}, shard_copies_{draft} {}

  // The optimizer's all-gather of the step before, where it overlaps with this step's start.
  void add_weight_prefetch() {
    if (!draft_.overlaps_data() || plan_.zero < 1 || plan_.shards_weights()) return;
    for_each_copy([&](const Copies& copies) {
      if (copies.alone) return;
      Tasks previous;
      for (int member : copies.members)
        for (TaskId both : draft_.weights_of_both[at(member)]) previous.push_back(both);
      for (const PassTasks& pass : draft_.passes[at(copies.leader())]) {
        if (!pass.opens_chunk) continue;
        const StageCost& stage = draft_.stage_cost(copies.leader(), pass.slot.chunk);
        for (std::size_t b = 0; b < pass.buckets.size(); ++b) {
          const std::int64_t parameters = stage.buckets[b].parameters.of(copies.kind);
          if (parameters == 0) continue;
          const CollectiveCost cost = draft_.traffic.weights(parameters, copies.kind);
          const TaskId gather = draft_.add_after(
              data_task(Label::What::weights, cost, pass.slot.chunk, copies), previous);
          previous = {gather};
          for (int member : copies.members)
            draft_.graph.depends(draft_.pass_of(member, pass.slot).buckets[b].entry, gather);
        }
      }
    });
  }

  void add_gradient_reduction() {
    if (plan_.shards_passes()) return;
    for_each_copy([&](const Copies& copies) {
      if (draft_.overlaps_data())
        reduce_in_buckets(copies);
      else
        reduce_at_the_end(copies);
    });
  }

  void reduce_in_buckets(const Copies& copies) {
    Tasks previous;
    int number = 0;
    for (const PassTasks& pass : draft_.passes[at(copies.leader())]) {
      const StageCost& stage = draft_.stage_cost(copies.leader(), pass.slot.chunk);
      if (!is_last(copies.leader(), pass.slot)) continue;
      for (std::size_t b = 0; b < pass.buckets.size(); ++b) {
        const Bucket& bucket = stage.buckets[pass.buckets.size() - 1 - b];
        const std::int64_t parameters = bucket.parameters.of(copies.kind);
        if (parameters == 0) continue;
        for (int member : copies.members)
          add_new(previous, draft_.pass_of(member, pass.slot).buckets[b].exit);
        if (!copies.alone) {
          const CollectiveCost cost = draft_.traffic.bucketed_gradients(parameters, copies.kind);
          previous = {draft_.add_after(
              data_task(Label::What::gradients, cost, pass.slot.chunk, copies), previous)};
        }
        previous = shard_copies_.sum(copies.kind, number++, parameters, pass.slot, copies.members,
                                     previous);
      }
    }
    for (int member : copies.members)
      draft_.ready[at(member)].insert(draft_.ready[at(member)].end(), previous.begin(),
                                      previous.end());
  }

  // True if the pass completes the gradients of its chunk's weights.
  bool is_last(int rep_index, const Slot& slot) {
    if (!completes_gradients(slot)) return false;
    for (std::size_t i = at(draft_.index_of(rep_index, slot)) + 1;
         i < draft_.passes[at(rep_index)].size(); ++i) {
      const Slot& later = draft_.passes[at(rep_index)][i].slot;
      if (completes_gradients(later) && later.chunk == slot.chunk) return false;
    }
    return true;
  }

  void reduce_at_the_end(const Copies& copies) {
    const std::int64_t parameters = parameters_of(copies);
    if (parameters == 0) return;
    Tasks previous;
    for (int member : copies.members)
      for (TaskId earlier : draft_.ready[at(member)]) add_new(previous, earlier);
    if (!copies.alone) {
      const CollectiveCost cost = draft_.traffic.gradients(parameters, copies.kind);
      previous = {draft_.add_after(data_task(Label::What::gradients, cost, 0, copies), previous)};
    }
    previous = shard_copies_.sum(copies.kind, 0, parameters, {}, copies.members, previous);
    for (int member : copies.members) draft_.ready[at(member)] = previous;
  }

  // First and last stage hold a copy each of a tied embedding and add up their gradients.
  void add_tied_gradients() {
    if (draft_.cost.tied_gradient_bytes.si() <= 0.0) return;
    if (plan_.holds(0, plan_.virtual_stages() - 1)) return;  // Both are on one rank.
    for (int index = 0; index < draft_.rep_count(); ++index) {
      if (draft_.rep(index).at.stage != 0) continue;
      Coordinates last_at = draft_.rep(index).at;
      last_at.stage = plan_.pp - 1;
      const Rank last_rank = draft_.placement.rank(last_at);
      const int last = draft_.classes.rep_of(last_rank);
      const CollectiveCost cost = draft_.traffic.tied_gradients(
          draft_.cost.tied_gradient_bytes, draft_.pair(draft_.rep(index).rank, last_rank));
      StepTask task;
      task.kind = Label::Kind::transfer;
      task.what = Label::What::gradients;
      task.stream = Stream::data;
      task.owner = index;
      task.to_rep = last;
      task.duration = cost.latency;
      task.tag = cost.tag;
      task.flows =
          collective_flows(draft_.topology, draft_.classes, {draft_.rep(index).rank, last_rank},
                           cost, Traffic::tied, Traffic::tied);
      const TaskId tied = draft_.add(std::move(task));
      for (int end : {index, last}) {
        for (TaskId earlier : draft_.ready[at(end)]) draft_.graph.depends(tied, earlier);
        draft_.ready[at(end)] = {tied};
      }
    }
  }

  // Every rank needs the norm of all gradients (and whether any is infinite) before it may change a
  // weight: a small all-reduce over all ranks that hold a part of the model. With post-validation a
  // stage waits only for the sum of the stages before it.
  Tasks add_norms() {
    const bool by_stage = draft_.scenario.software.optimizer_post_validation;
    const bool alone = by_stage && plan_.gpus() == plan_.pp;
    const CollectiveCost sum = alone ? draft_.traffic.norm_to_next_stage() : draft_.traffic.norm();
    Tasks norms;
    for (int stage = 0; stage < (by_stage ? plan_.pp : 1); ++stage) {
      StepTask norm;
      norm.kind = Label::Kind::transfer;
      norm.what = Label::What::norm;
      norm.stream = Stream::data;
      norm.duration = alone && stage == 0 ? Seconds{} : sum.latency;
      norm.tag = sum.tag;
      norm.chunk = stage;
      norms.push_back(
          draft_.add_after(std::move(norm), norms.empty() ? Tasks{} : Tasks{norms.back()}));
    }
    for (int index = 0; index < draft_.rep_count(); ++index)
      for (TaskId earlier : draft_.ready[at(index)])
        draft_.graph.depends(norms[by_stage ? at(draft_.rep(index).at.stage) : 0], earlier);
    return norms;
  }

  void add_optimizer() {
    const Tasks norms = add_norms();
    Tasks updated;
    for (int index = 0; index < draft_.rep_count(); ++index) {
      StepTask task;
      task.what = Label::What::optimizer;
      task.tag = draft_.cost.optimizer_tag;
      task.owner = index;
      task.duration =
          draft_.cost.optimizer[at(draft_.rep(index).at.stage)] / draft_.rep(index).speed;
      const TaskId normed = norms[norms.size() > 1 ? at(draft_.rep(index).at.stage) : 0];
      updated.push_back(draft_.add_after(std::move(task), {normed}));
    }
    if (plan_.zero < 1 || plan_.shards_weights() || draft_.overlaps_data()) return;
    add_mirror_weights_at_the_end(draft_, updated);
    // Without expert parallelism experts' weights are the one optimizer's (Megatron-Core,
    // moe/experts.py: allreduce = not expert_parallel).
    const bool twice = draft_.scenario.software.optimizers_gather_all && plan_.ep > 1;
    for (int round = 0; round < (twice ? 2 : 1); ++round) gather_weights(updated);
  }

  // `updated`: each representative's update; on return the task after which it has all weights.
  void gather_weights(Tasks& updated) {
    for_each_copy([&](const Copies& copies) {
      const std::int64_t parameters = parameters_of(copies);
      if (parameters == 0 || copies.alone) return;
      CollectiveCost cost = draft_.traffic.weights(parameters, copies.kind);
      cost.latency += draft_.traffic.sliced_gather_host(draft_.rep(copies.leader()).at.stage);
      const TaskId gather = draft_.add(data_task(Label::What::weights, cost, 0, copies));
      for (int member : copies.members) {
        draft_.graph.depends(gather, updated[at(member)]);
        updated[at(member)] = gather;
      }
    });
  }

 private:
  template <class Visit>
  void for_each_copy(const Visit& visit) {
    for (GroupKind kind : {GroupKind::data, GroupKind::expert_data}) {
      const bool alone = draft_.traffic.shapes()[kind].ranks == 1;
      if (alone && plan_.dp_replicate == 1) continue;
      draft_.for_each_group(kind, [&](Rank member, const std::vector<int>& members) {
        visit(Copies{kind, member, members, alone});
      });
    }
  }

  std::int64_t parameters_of(const Copies& copies) const {
    std::int64_t sum = 0;
    for (int chunk = 0; chunk < plan_.chunks(); ++chunk)
      sum += draft_.stage_cost(copies.leader(), chunk).parameters.of(copies.kind);
    return sum;
  }

  StepTask data_task(Label::What what, const CollectiveCost& cost, int chunk,
                     const Copies& copies) {
    StepTask task;
    task.kind = Label::Kind::transfer;
    task.what = what;
    task.stream = Stream::data;
    task.owner = copies.leader();
    task.group = copies.kind;
    task.chunk = chunk;
    task.duration = cost.latency;
    task.tag = cost.tag;
    task.flows = flows_of(cost, copies);
    return task;
  }

  // Most buckets have the same size and share flows.
  const Flows& flows_of(const CollectiveCost& cost, const Copies& copies) {
    const auto [known, fresh] =
        flows_.try_emplace({copies.kind, copies.member, cost.scale_up_bytes, cost.network_bytes,
                            cost.scale_up_rate, cost.network_rate});
    if (fresh)
      known->second =
          collective_flows(draft_.topology, draft_.classes, copies.member, {cost, copies.kind});
    return known->second;
  }

  // Parameters that determine a group's flows.
  using FlowsKey = std::tuple<GroupKind, Rank, Bytes, Bytes, BytesPerSecond, BytesPerSecond>;

  StepDraft& draft_;
  const Plan& plan_;
  ShardCopies shard_copies_;
  std::map<FlowsKey, Flows> flows_;
};

}  // namespace

void add_weight_prefetch(StepDraft& draft) { DataParallelBuilder{draft}.add_weight_prefetch(); }
void add_gradient_reduction(StepDraft& draft) {
  DataParallelBuilder{draft}.add_gradient_reduction();
}
void add_closing(StepDraft& draft) {
  DataParallelBuilder builder{draft};
  builder.add_tied_gradients();
  builder.add_optimizer();
}

}  // namespace orrery
