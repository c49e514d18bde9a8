#include "sim/work/result/longest_stage.hpp"

#include <algorithm>
#include <vector>

namespace orrery {

std::optional<Span> longest_stage(const Scenario& scenario, const TrainingStep& step,
                                  const Timeline& timeline) {
  if (!scenario.software.optimizer_post_validation) return std::nullopt;
  std::vector<Span> stages(static_cast<std::size_t>(scenario.plan.pp),
                           {timeline.makespan, Seconds{}});
  for (int i = 0; i < step.graph.size(); ++i) {
    const Label::What what = step.label(TaskId{i}).what;
    if (what == Label::What::norm || what == Label::What::transfer) continue;
    const int owner = step.graph.task(TaskId{i}).owner;
    const Role& role = step.cast.roles()[static_cast<std::size_t>(owner)];
    Span& stage = stages[static_cast<std::size_t>(role.at.stage)];
    const Span& span = timeline.spans[static_cast<std::size_t>(i)];
    if (what == Label::What::forward) stage.start = std::min(stage.start, span.start);
    stage.finish = std::max(stage.finish, span.finish);
  }
  return *std::max_element(stages.begin(), stages.end(), [](const Span& a, const Span& b) {
    return a.finish - a.start < b.finish - b.start;
  });
}

}  // namespace orrery
