#include "sim/training/shard_copies.hpp"

namespace orrery {

Tasks ShardCopies::sum(GroupKind kind, int number, std::int64_t parameters, const Slot& slot,
                       const std::vector<int>& members, const Tasks& reduced) {
  if (draft_.plan.dp_replicate == 1) return reduced;
  Tasks sums;
  for (int member : members) {
    const Rank rank = draft_.role(member).rank;
    const int first =
        roles_in(draft_.cast, draft_.placement.group(GroupKind::shard_copies, rank)).front();
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
          collective_flows(draft_.topology, draft_.cast, rank, {cost, GroupKind::shard_copies});
      sum.task = draft_.add(std::move(task));
    }
    for (TaskId task : reduced)
      if (add_new(sum.after, task)) draft_.graph.depends(sum.task, task);
    add_new(sums, sum.task);
  }
  return sums;
}

}  // namespace orrery
