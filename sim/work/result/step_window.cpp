#include "sim/work/result/step_window.hpp"

#include <algorithm>
#include <vector>

#include "sim/engine/graph/critical_path.hpp"

namespace orrery {
namespace {

// `start`, `finish`: of a task; `end`: of the last one.
template <class Start, class Finish>
StepWindow longest_stage(const Plan& plan, const TrainingStep& step, Seconds end,
                         const Start& start, const Finish& finish) {
  std::vector<StepWindow> stages(static_cast<std::size_t>(plan.pp), {end, Seconds{}, true});
  for (int i = 0; i < step.graph.size(); ++i) {
    const TaskId id{i};
    const Label::What what = step.label(id).what;
    if (what == Label::What::norm || what == Label::What::transfer) continue;
    const int owner = step.graph.task(id).owner;
    const Role& role = step.cast.roles()[static_cast<std::size_t>(owner)];
    StepWindow& stage = stages[static_cast<std::size_t>(role.at.stage)];
    if (what == Label::What::forward) stage.start = std::min(stage.start, start(id));
    stage.finish = std::max(stage.finish, finish(id));
  }
  return *std::max_element(
      stages.begin(), stages.end(),
      [](const StepWindow& a, const StepWindow& b) { return a.length() < b.length(); });
}

}  // namespace

StepWindow step_window(const Scenario& scenario, const TrainingStep& step,
                       const Timeline& timeline) {
  const Seconds end = timeline.makespan.seconds();
  if (!scenario.software.optimizer_post_validation) return {{}, end};
  return longest_stage(
      scenario.plan, step, end, [&](TaskId id) { return timeline.of(id).start.seconds(); },
      [&](TaskId id) { return timeline.of(id).finish.seconds(); });
}

StepWindow least_step_window(const Scenario& scenario, const TrainingStep& step) {
  const CriticalPath path = critical_path(step.graph);
  if (!scenario.software.optimizer_post_validation) return {{}, path.length};
  const auto finish = [&](TaskId id) { return path.ends[static_cast<std::size_t>(id.value)]; };
  return longest_stage(
      scenario.plan, step, path.length,
      [&](TaskId id) { return finish(id) - least_time(step.graph.task(id)); }, finish);
}

}  // namespace orrery
