#include "sim/training/task_relations.hpp"

#include "sim/collectives/group_flows.hpp"
#include "sim/core/index.hpp"

namespace orrery {
namespace {

bool is_pass(Label::What what) {
  return what == Label::What::forward || what == Label::What::backward ||
         what == Label::What::weight_gradient;
}

}  // namespace

TaskRelations::TaskRelations(const TrainingStep& step)
    : step_{step}, fed_by_(at(step.graph.size())) {
  members_.fill(std::vector<std::vector<int>>(step.cast.roles().size()));
  const Placement& placement = step.cast.placement();
  for (std::size_t i = 0; i < step.cast.roles().size(); ++i) {
    const Coordinates where = step.cast.roles()[i].at;
    const int role = static_cast<int>(i);
    for (GroupKind kind : all_group_kinds) {
      const int leader = roles_in(step.cast, placement.group(kind, where)).front();
      members_[static_cast<std::size_t>(kind)][at(leader)].push_back(role);
    }
  }
  for (int i = 0; i < step.graph.size(); ++i) {
    const Label& label = step.label(TaskId{i});
    if (label.what == Label::What::transfer)
      step.graph.for_each_successor(TaskId{i}, [&](TaskId after) {
        if (step.graph.task(after).owner != label.to_role || !is_pass(step.label(after).what))
          return;
        fed_by_[at(after.value)].push_back(i);
      });
  }
}

std::vector<int> TaskRelations::data_members(int task) const {
  const int owner = step_.graph.task(TaskId{task}).owner;
  const Label& reduction = step_.label(TaskId{task});
  if (reduction.to_role >= 0) return {owner, reduction.to_role};
  return members(reduction.group, owner);
}

}  // namespace orrery
