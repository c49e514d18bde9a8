#include "sim/posttraining/forward_pass.hpp"

#include <cassert>
#include <limits>

#include "sim/training/estimate.hpp"

namespace orrery {

Seconds forward_time(const Scenario& scenario, EstimateContext& context) {
  assert(scenario.plan.vpp == 1 && scenario.plan.copies() == 1);
  Scenario forward = scenario;
  Plan& plan = forward.plan;
  plan.schedule = &gpipe();
  plan.ep_overlap = false;
  plan.recompute = {};
  plan.offload_layers = 0;
  plan.offload_modules = {};
  if (plan.zero < 3) plan.zero = 0;
  Detail detail;
  detail.most_memory = std::numeric_limits<double>::infinity();
  const Estimate step = estimate(forward, context, detail);
  Seconds end;
  for (int id = 0; id < step.step.graph.size(); ++id) {
    const TaskId task{id};
    if (step.step.graph.task(task).stream != Stream::compute) continue;
    if (step.step.label(task).what == Label::What::forward)
      end = std::max(end, Seconds{step.timeline.of(task).finish.seconds()});
  }
  return end;
}

}  // namespace orrery
