#include "sim/training/step_shards.hpp"

#include <algorithm>
#include <map>

#include "sim/layers/host_optimizer.hpp"
#include "sim/training/step_draft.hpp"

namespace orrery {

Tasks ShardCopies::sum(GroupKind kind, int number, std::int64_t parameters, const Slot& slot,
                       const std::vector<int>& members, const Tasks& reduced) {
  if (draft_.plan.dp_replicate == 1) return reduced;
  Tasks sums;
  for (int member : members) {
    const Rank rank = draft_.rep(member).rank;
    const int first =
        reps_in(draft_.classes, draft_.placement.group(GroupKind::shard_copies, rank)).front();
    const auto [place, fresh] = sums_.try_emplace({kind, number, first});
    Sum& sum = place->second;
    if (fresh) {
      const CollectiveCost cost = draft_.traffic.gradients_of_copies(parameters, kind);
      StepTask task;
      task.kind = Label::Kind::transfer;
      task.what = Label::What::gradients;
      task.stream = Stream::data;
      task.owner = first;
      task.group = GroupKind::shard_copies;
      task.chunk = slot.chunk;
      task.microbatch = slot.microbatch;
      task.duration = cost.latency;
      task.tag = cost.tag;
      task.flows =
          collective_flows(draft_.topology, draft_.classes, rank, {cost, GroupKind::shard_copies});
      sum.task = draft_.add(std::move(task));
    }
    for (TaskId task : reduced)
      if (add_new(sum.after, task)) draft_.graph.depends(sum.task, task);
    add_new(sums, sum.task);
  }
  return sums;
}

namespace {

// One unit of weights in one pass. It may be gathered before the unit runs, and its gradients
// reduced afterwards.
struct Unit {
  const PassTasks* pass = nullptr;
  std::size_t position = 0;  // Index in the pass.
  RankParameters gathered;
  RankParameters reduced;
  bool ahead = false;  // Its gather overlaps with the unit before.
};

// Builds the traffic of weights and gradients in shards: weights are gathered for each pass, a unit
// ahead, and gradients reduced to their owners after each backward pass.
//
//     compute      | unit 1 | unit 2 | unit 3 |
//     forward      | gather 2 | gather 3 |
//     backward     | gather 2 | reduce 1, gather 3 | reduce 2, ...
//
// A unit's gather starts with the pass of the unit before, so that two units are whole at a time
// (PyTorch FSDP: forward and backward prefetch; the next forward pass begins to gather when the
// backward pass before it has ended). A rank's collectives are on one stream and keep their order:
// a layer's dense weights first, which all replicas share, then its experts.
class ShardBuilder {
 public:
  explicit ShardBuilder(StepDraft& draft)
      : draft_{draft},
        plan_{draft.plan},
        shard_copies_{draft},
        stream_(at(draft.rep_count())),
        sums_(at(draft.rep_count())) {}

  void build() {
    std::vector<std::vector<Group>> of_stage(at(plan_.pp));
    for (GroupKind kind : {GroupKind::data, GroupKind::expert_data}) {
      const bool alone = draft_.traffic.shapes()[kind].ranks == 1;
      if (alone && plan_.dp_replicate == 1) continue;
      draft_.for_each_group(kind, [&](Rank member, const std::vector<int>& members) {
        const int stage = draft_.rep(members.front()).at.stage;
        of_stage[at(stage)].push_back({kind, member, members, alone, {}});
      });
    }
    for (std::vector<Group>& groups : of_stage) add_stage(groups);
    for (int rep = 0; rep < draft_.rep_count(); ++rep) {
      Tasks& ready = draft_.ready[at(rep)];
      for (const std::vector<Tasks>* last : {&stream_, &sums_})
        ready.insert(ready.end(), (*last)[at(rep)].begin(), (*last)[at(rep)].end());
    }
  }

 private:
  // Ranks that hold shards of the same weights.
  struct Group {
    GroupKind kind;
    Rank member;
    std::vector<int> members;  // Representatives.
    bool alone = false;        // One rank, whose shards have copies on other ranks.
    // Tasks are cached, because the same units recur in every pass.
    std::map<std::pair<Label::What, std::int64_t>, StepTask> priced;
  };

  std::vector<Unit> units_of(int leader) const {
    std::vector<Unit> units;
    for (const PassTasks& pass : draft_.passes[at(leader)]) {
      const StageCost& stage = draft_.stage_cost(leader, pass.slot.chunk);
      const bool forward = pass.slot.pass == Pass::forward;
      for (std::size_t i = 0; i < pass.buckets.size(); ++i) {
        Unit unit{&pass, i, {}, {}, !(forward && i == 0)};
        if (pass.buckets.size() == stage.count(forward)) {
          const Bucket& bucket = stage.bucket(forward, i);
          unit.ahead = unit.ahead && bucket.gathered_ahead;
          if (pass.gathers && plan_.shards_weights())
            unit.gathered = forward ? bucket.gathered : bucket.regathered;
          if (pass.reduces) unit.reduced = bucket.parameters;
        }
        units.push_back(unit);
      }
    }
    return units;
  }

  // All ranks of a stage have the same units.
  void add_stage(std::vector<Group>& groups) {
    if (groups.empty()) return;
    const std::vector<Unit> units = units_of(groups.front().members.front());
    for (std::size_t i = 0; i < units.size(); ++i) {
      if (i == 0) gather(groups, units, 0);
      if (i + 1 < units.size()) gather(groups, units, i + 1);
      reduce(groups, units, i);
    }
  }

  void gather(std::vector<Group>& groups, const std::vector<Unit>& units, std::size_t i) {
    const std::size_t ahead = plan_.dp_overlap && units[i].ahead ? 2 : 1;
    for (Group& group : groups) {
      const std::int64_t parameters = units[i].gathered.of(group.kind);
      if (parameters == 0 || group.alone) continue;
      const TaskId task = add(group, Label::What::weights, parameters, units[i]);
      if (i >= ahead)
        for (int member : group.members)
          draft_.graph.depends(task, stretch(member, units[i - ahead]).exit);
      for (int member : group.members) draft_.graph.depends(stretch(member, units[i]).entry, task);
    }
  }

  void reduce(std::vector<Group>& groups, const std::vector<Unit>& units, std::size_t i) {
    for (Group& group : groups) {
      const std::int64_t parameters = units[i].reduced.of(group.kind);
      if (parameters == 0) continue;
      Tasks done;
      if (!group.alone) done = {add(group, Label::What::gradients, parameters, units[i])};
      for (int member : group.members) {
        const TaskId exit = stretch(member, units[i]).exit;
        if (group.alone)
          add_new(done, exit);
        else
          draft_.graph.depends(done.front(), exit);
      }
      const bool sums = !draft_.scenario.software.sums_copies_once ||
                        units[i].pass->slot.microbatch + 1 == plan_.microbatches;
      if (plan_.dp_replicate > 1 && sums) {
        for (int member : group.members)
          for (TaskId earlier : sums_[at(member)]) add_new(done, earlier);
        done = shard_copies_.sum(group.kind, static_cast<int>(i), parameters, units[i].pass->slot,
                                 group.members, done);
        for (int member : group.members) sums_[at(member)] = done;
      }
      if (plan_.dp_overlap || i + 1 == units.size()) continue;
      for (int member : group.members)
        for (TaskId task : done) draft_.graph.depends(stretch(member, units[i + 1]).entry, task);
    }
  }

  const Stretch& stretch(int member, const Unit& unit) {
    return draft_.pass_of(member, unit.pass->slot).buckets[unit.position];
  }

  TaskId add(Group& group, Label::What what, std::int64_t parameters, const Unit& unit) {
    StepTask task = priced(group, what, parameters);
    task.chunk = unit.pass->slot.chunk;
    task.microbatch = unit.pass->slot.microbatch;
    Tasks before;
    for (int member : group.members)
      for (TaskId earlier : stream_[at(member)]) add_new(before, earlier);
    const TaskId id = draft_.add_after(std::move(task), before);
    for (int member : group.members) stream_[at(member)] = {id};
    return id;
  }

  const StepTask& priced(Group& group, Label::What what, std::int64_t parameters) {
    const auto [place, fresh] = group.priced.try_emplace({what, parameters});
    StepTask& task = place->second;
    if (!fresh) return task;
    const CollectiveCost cost = what == Label::What::weights
                                    ? draft_.traffic.shard_weights(parameters, group.kind)
                                    : draft_.traffic.shard_gradients(parameters, group.kind);
    task.what = what;
    task.kind = Label::Kind::transfer;
    task.stream = Stream::data;
    task.group = group.kind;
    task.owner = group.members.front();
    // Copies from and to the host are on the same stream as the collectives.
    const double shard =
        static_cast<double>(parameters) /
        (group.kind == GroupKind::data ? plan_.shard_ranks() : plan_.expert_shard_ranks());
    task.duration =
        cost.latency + (what == Label::What::weights ? weights_from_host(draft_.scenario, shard)
                                                     : gradients_to_host(draft_.scenario, shard));
    task.tag = cost.tag;
    task.flows =
        collective_flows(draft_.topology, draft_.classes, group.member, {cost, group.kind});
    return task;
  }

  StepDraft& draft_;
  const Plan& plan_;
  ShardCopies shard_copies_;
  // Last collectives of each representative: of shards, and of their copies, which have their own
  // communicator and overlap with the next reduction (torch, fully_shard's all_reduce_stream).
  std::vector<Tasks> stream_, sums_;
};

}  // namespace

void add_shard_traffic(StepDraft& draft) {
  if (draft.plan.shards_passes()) ShardBuilder{draft}.build();
}

}  // namespace orrery
