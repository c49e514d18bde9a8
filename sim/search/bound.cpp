#include "sim/search/bound.hpp"

#include <algorithm>
#include <cassert>

#include "sim/plan/placement.hpp"
#include "sim/training/routed.hpp"

namespace orrery {
namespace {

// A sum in another order may come out larger by its rounding.
constexpr double rounding = 1e-9;

double fastest_gpu(const System& system) {
  double speed = 1.0;
  for (const GpuOverride& change : system.gpu_overrides) speed = std::max(speed, change.speed);
  return speed;
}

Seconds slowest_optimizer(const Scenario& scenario, const KernelModel& kernels) {
  Seconds slowest;
  for (const Seconds& update : optimizer_times(scenario, kernels))
    slowest = std::max(slowest, update);
  return slowest;
}

}  // namespace

PassPlaces::PassPlaces(const Scenario& scenario) : speed{fastest_gpu(scenario.system)} {
  const Placement placement{scenario.plan, scenario.system};
  shapes = placement.shapes();
  // Groups that lie in other ways than the priced one may be faster than their price.
  alike = placement.regular();
}

PassTimes pass_times(const Scenario& scenario, const KernelModel& kernels,
                     const CollectiveTime& collectives) {
  const PassPlaces places{scenario};
  return pass_times(scenario, kernels, places,
                    price_layers(scenario, kernels, collectives, places.shapes, places.speed));
}

PassTimes pass_times(const Scenario& scenario, const KernelModel& kernels, const PassPlaces& places,
                     const LayerLengths& layers) {
  const bool alone = !scenario.plan.ep_overlap;  // Else another pass hides what it waits for.
  const auto time = [&](const PassLength& pass) {
    return places.alike && alone ? pass.time : pass.compute;
  };
  PassTimes times;
  for (const StageLengths& stage : add_up_stages(scenario, layers)) {
    times.forward.push_back(time(stage.forward));
    times.backward.push_back(time(stage.backward));
  }
  times.optimizer = slowest_optimizer(scenario, kernels) / places.speed;
  times.transfer_bytes = transfer_bytes(scenario);
  return times;
}

Seconds step_lower_bound(const Scenario& scenario, const PassTimes& passes,
                         const CollectiveTime& collectives) {
  const Plan& plan = scenario.plan;
  const auto at = [](int index) { return static_cast<std::size_t>(index); };
  Seconds x;
  if (plan.pp > 1) {
    x = collectives.send(passes.transfer_bytes, false).time();
    // Else every peer on the next stage lies in another domain.
    if (plan.gpus() / plan.pp < scenario.system.nvlink_domain)
      x = std::min(x, collectives.send(passes.transfer_bytes, true).time());
  }
  // A share of the optimizer is no shorter than the share of its time.
  const double copies = plan.zero >= 1 ? plan.copies() * plan.gpus() / (plan.tp * plan.pp) : 1.0;
  const Seconds close =
      scenario.software.optimizer_post_validation ? Seconds{} : passes.optimizer / copies;
  const auto work_of = [&](int stage) {
    if (!passes.work.empty()) return passes.work[at(stage)];
    Seconds one;
    for (int chunk = 0; chunk < plan.chunks(); ++chunk) {
      const std::size_t v = at(plan.virtual_stage(stage, chunk));
      one += passes.forward[v] + passes.backward[v];
    }
    return plan.microbatches_of_chunk() * one;
  };
  Seconds longest;
  if (!plan.schedule->idles_at_both_ends()) {
    for (int stage = 0; stage < plan.pp; ++stage) longest = std::max(longest, work_of(stage));
    return (1.0 - rounding) * (longest + close);
  }
  const int last = plan.virtual_stages() - 1;
  Seconds ends;  // Fill and drain together.
  for (int stage = 0; stage < plan.pp; ++stage) {
    int sends = 0;
    for (int v = stage; v <= last; v += plan.pp) sends += (v < last ? 1 : 0) + (v > 0 ? 1 : 0);
    Seconds path = ends + work_of(stage);
    if (!scenario.software.overlap_pp && plan.pp > 1)
      path += (plan.microbatches * sends - (stage > 0 ? 1 : 0)) * x;
    longest = std::max(longest, path);
    ends += passes.forward[at(stage)] + passes.backward[at(stage)] + 2.0 * x;
  }
  return (1.0 - rounding) * (longest + close);
}

PassTimes routed_pass_times(const Scenario& scenario, EstimateContext& context) {
  Routed routed{scenario, context};
  assert(!routed.loads->even());
  Plan& plan = routed.scenario.plan;
  plan.zero = 0;  // Shards nothing, as other bounds do.
  const PassPlaces places{routed.scenario};
  const auto cost = price(routed, context, context.layout(Placement{plan, scenario.system}));
  const auto time = [&](const PassCost& pass) {
    return places.alike ? pass.time(places.speed) : pass.compute / places.speed;
  };
  const int draws = routed.loads->micro_batches();
  PassTimes times;
  times.forward.resize(cost->stages.size(), Seconds{1e300});
  times.backward = times.forward;
  times.work.resize(static_cast<std::size_t>(plan.pp));
  for (int group = 0; group < routed.loads->groups(); ++group)
    for (int stage = 0; stage < plan.pp; ++stage) {
      Seconds work;
      for (int chunk = 0; chunk < plan.chunks(); ++chunk) {
        const int v = plan.virtual_stage(stage, chunk);
        Seconds& least_forward = times.forward[static_cast<std::size_t>(v)];
        Seconds& least_backward = times.backward[static_cast<std::size_t>(v)];
        for (int m = 0; m < draws; ++m) {
          const StageCost& one = cost->stage(v, group, m);
          const Seconds forward = time(one.forward), backward = time(one.backward);
          least_forward = std::min(least_forward, forward);
          least_backward = std::min(least_backward, backward);
          const int with_this_draw = (plan.microbatches - m + draws - 1) / draws;
          work += with_this_draw * (forward + backward);
        }
      }
      Seconds& most = times.work[static_cast<std::size_t>(stage)];
      most = std::max(most, work);
    }
  times.optimizer = slowest_optimizer(routed.scenario, context.kernels(plan.dtype)) / places.speed;
  times.transfer_bytes = cost->transfer_bytes;
  return times;
}

}  // namespace orrery
