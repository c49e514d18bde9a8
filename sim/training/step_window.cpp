#include "sim/training/step_window.hpp"

#include <algorithm>
#include <vector>

#include "sim/engine/critical_path.hpp"

namespace orrery {
namespace {

// Of whose beginning or end a stage's window is made: of passes, gradients, weights and optimizer.
int stage_of(const TrainingStep& step, TaskId id) {
  const Label::What what = step.label(id).what;
  if (what == Label::What::norm || what == Label::What::transfer) return -1;
  const int owner = step.graph.task(id).owner;
  return step.cast.roles()[static_cast<std::size_t>(owner)].at.stage;
}

}  // namespace

StepWindow step_window(const Scenario& scenario, const TrainingStep& step,
                       const Timeline& timeline) {
  const Seconds end = timeline.makespan.seconds();
  if (!scenario.software.optimizer_post_validation) return {{}, end};
  std::vector<StepWindow> stages(static_cast<std::size_t>(scenario.plan.pp),
                                 {end, Seconds{}, true});
  for (int i = 0; i < step.graph.size(); ++i) {
    const TaskId id{i};
    const int of = stage_of(step, id);
    if (of < 0) continue;
    StepWindow& stage = stages[static_cast<std::size_t>(of)];
    if (step.label(id).what == Label::What::forward)
      stage.start = std::min(stage.start, timeline.of(id).start.seconds());
    stage.finish = std::max(stage.finish, timeline.of(id).finish.seconds());
  }
  return *std::max_element(
      stages.begin(), stages.end(),
      [](const StepWindow& a, const StepWindow& b) { return a.length() < b.length(); });
}

Seconds least_step_window(const Scenario& scenario, const TrainingStep& step) {
  if (!scenario.software.optimizer_post_validation) return critical_path(step.graph).length;
  Seconds longest;
  for (int stage = 0; stage < scenario.plan.pp; ++stage) {
    std::vector<TaskId> forward, all;
    for (int i = 0; i < step.graph.size(); ++i) {
      const TaskId id{i};
      if (stage_of(step, id) != stage) continue;
      all.push_back(id);
      if (step.label(id).what == Label::What::forward) forward.push_back(id);
    }
    const std::vector<Seconds> chains = longest_chains(step.graph, forward);
    for (TaskId id : all) longest = std::max(longest, chains[static_cast<std::size_t>(id.value)]);
  }
  return longest;
}

}  // namespace orrery
