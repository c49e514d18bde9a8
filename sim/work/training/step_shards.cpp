#include <map>

#include "sim/work/training/step_draft.hpp"

namespace orrery {
namespace {

// One unit of weights in one pass: it is gathered before the unit runs, its gradients are reduced
// after it, or neither.
struct Unit {
  const PassTasks* pass = nullptr;
  std::size_t position = 0;  // In the pass.
  std::int64_t gathered = 0;
  std::int64_t reduced = 0;
  bool ahead = false;  // Its gather starts beside the unit before.
};

// Weights and gradients that live in shards: gathered for each pass that needs them, a unit ahead,
// and reduced to their owners after each backward pass.
//
//     compute      | unit 1 | unit 2 | unit 3 |
//     forward      | gather 2 | gather 3 |
//     backward     | gather 2 | reduce 1, gather 3 | reduce 2, ...
//
// A unit's gather starts with the pass of the unit before, so that two units are whole at a time
// (PyTorch FSDP: forward and backward prefetch; the next forward pass begins to gather when the
// backward pass before it has ended). A group's collectives are on one stream and keep their
// order.
class ShardBuilder {
 public:
  explicit ShardBuilder(StepDraft& draft) : draft_{draft}, plan_{draft.plan} {}

  void build() {
    draft_.for_each_group(GroupKind::data, [&](Rank member, const std::vector<int>& members) {
      member_ = member;
      members_ = &members;
      priced_.clear();
      add_group(units_of(members.front()));
    });
  }

 private:
  std::vector<Unit> units_of(int leader) const {
    std::vector<Unit> units;
    for (const PassTasks& pass : draft_.passes[at(leader)]) {
      const StageCost& stage = draft_.stage_cost(leader, pass.slot.chunk);
      const bool forward = pass.slot.pass == Pass::forward;
      for (std::size_t i = 0; i < pass.buckets.size(); ++i) {
        Unit unit{&pass, i, 0, 0, !(forward && i == 0)};
        if (pass.buckets.size() == stage.count(forward)) {
          const Bucket& bucket = stage.bucket(forward, i);
          unit.ahead = unit.ahead && bucket.gathered_ahead;
          if (pass.gathers && plan_.shards_weights())
            unit.gathered = forward ? bucket.parameters.dense : bucket.regathered;
          if (pass.reduces) unit.reduced = bucket.parameters.dense;
        }
        units.push_back(unit);
      }
    }
    return units;
  }

  void add_group(const std::vector<Unit>& units) {
    Tasks stream;
    for (std::size_t i = 0; i < units.size(); ++i) {
      if (i == 0) gather(units, 0, stream);
      if (i + 1 < units.size()) gather(units, i + 1, stream);
      reduce(units, i, stream);
    }
    for (int member : *members_) {
      Tasks& ready = draft_.ready[at(member)];
      ready.insert(ready.end(), stream.begin(), stream.end());
    }
  }

  void gather(const std::vector<Unit>& units, std::size_t i, Tasks& stream) {
    if (units[i].gathered == 0) return;
    const TaskId task = add(Label::What::weights, units[i].gathered, units[i], stream);
    const std::size_t ahead = plan_.dp_overlap && units[i].ahead ? 2 : 1;
    if (i >= ahead)
      for (int member : *members_)
        draft_.graph.depends(task, stretch(member, units[i - ahead]).exit);
    for (int member : *members_) draft_.graph.depends(stretch(member, units[i]).entry, task);
  }

  void reduce(const std::vector<Unit>& units, std::size_t i, Tasks& stream) {
    if (units[i].reduced == 0) return;
    const TaskId task = add(Label::What::gradients, units[i].reduced, units[i], stream);
    for (int member : *members_) draft_.graph.depends(task, stretch(member, units[i]).exit);
    if (plan_.dp_overlap || i + 1 == units.size()) return;
    for (int member : *members_) draft_.graph.depends(stretch(member, units[i + 1]).entry, task);
  }

  const Stretch& stretch(int member, const Unit& unit) {
    return draft_.pass_of(member, unit.pass->slot).buckets[unit.position];
  }

  TaskId add(Label::What what, std::int64_t parameters, const Unit& unit, Tasks& stream) {
    StepTask task = priced(what, parameters);
    task.chunk = unit.pass->slot.chunk;
    task.microbatch = unit.pass->slot.microbatch;
    const TaskId id = draft_.add_after(std::move(task), stream);
    stream = {id};
    return id;
  }

  // The same unit comes by in every pass.
  const StepTask& priced(Label::What what, std::int64_t parameters) {
    const auto [place, fresh] = priced_.try_emplace({what, parameters});
    StepTask& task = place->second;
    if (!fresh) return task;
    const CollectiveCost cost = what == Label::What::weights
                                    ? draft_.traffic.shard_weights(parameters)
                                    : draft_.traffic.shard_gradients(parameters);
    task.what = what;
    task.kind = Label::Kind::transfer;
    task.stream = Stream::data;
    task.group = GroupKind::data;
    task.owner = members_->front();
    task.duration = cost.latency;
    task.tag = cost.tag;
    task.flows = collective_flows(draft_.topology, draft_.cast, member_, {cost, GroupKind::data});
    return task;
  }

  StepDraft& draft_;
  const Plan& plan_;
  Rank member_;
  const std::vector<int>* members_ = nullptr;
  std::map<std::pair<Label::What, std::int64_t>, StepTask> priced_;
};

}  // namespace

void add_shard_traffic(StepDraft& draft) {
  if (draft.plan.shards_passes()) ShardBuilder{draft}.build();
}

}  // namespace orrery
