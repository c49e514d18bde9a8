#include "sim/search/bound.hpp"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <utility>

#include "sim/plan/placement.hpp"
#include "sim/training/context.hpp"
#include "sim/training/waiting.hpp"

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
  regular = placement.regular();
  // Groups that lie in other ways than the priced one may be faster than their price.
  alike = regular || placement.passes_stay_in_domains();
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
  const int samples = routed.loads->micro_batches();
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
        for (int m = 0; m < samples; ++m) {
          const StageCost& one = cost->stage(v, group, m);
          const Seconds forward = time(one.forward), backward = time(one.backward);
          least_forward = std::min(least_forward, forward);
          least_backward = std::min(least_backward, backward);
          const int with_this_sample = (plan.microbatches - m + samples - 1) / samples;
          work += with_this_sample * (forward + backward);
        }
      }
      Seconds& most = times.work[static_cast<std::size_t>(stage)];
      most = std::max(most, work);
    }
  times.optimizer = slowest_optimizer(routed.scenario, context.kernels(plan.dtype)) / places.speed;
  times.transfer_bytes = cost->transfer_bytes;
  return times;
}

namespace {

// Some 100 MB. Those of a dense model's plans are fewer; of models with experts they come again
// soon or not at all.
constexpr std::size_t most_known = 200'000;

// The plan with what makes no difference to its passes taken out.
Plan as_priced(Plan plan) {
  plan.zero = 0;
  plan.dp_overlap = false;
  if (plan.schedule->wraps()) plan.schedule = &default_schedule(1);
  plan.gbs = plan.microbatches = 1;
  return plan;
}

// The plan with what makes no difference to its layers taken out as well (LayerLengths).
Plan as_layers(Plan plan) {
  plan = as_priced(std::move(plan));
  plan.schedule = &default_schedule(1);
  plan.pp = plan.vpp = plan.dp = 1;
  return plan;
}

bool alike_inside_passes(const GroupShapes& one, const GroupShapes& other) {
  return std::all_of(std::begin(all_group_kinds), std::end(all_group_kinds), [&](GroupKind kind) {
    return !is_inside_passes(kind) || one[kind] == other[kind];
  });
}

}  // namespace

std::size_t KnownPassTimes::Hash::operator()(const Plan& plan) const {
  std::uint64_t sum = 14695981039346656037u;  // FNV-1a.
  for (const std::int64_t part :
       {std::int64_t{plan.tp}, std::int64_t{plan.pp}, std::int64_t{plan.vpp}, std::int64_t{plan.cp},
        std::int64_t{plan.dp}, std::int64_t{plan.ep}, std::int64_t{plan.etp}, plan.mbs,
        static_cast<std::int64_t>(plan.recompute.kind),
        std::int64_t{plan.sp} + 2 * std::int64_t{plan.tp_overlap()}})
    sum = (sum ^ static_cast<std::uint64_t>(part)) * 1099511628211u;
  return sum;
}

const PassPlaces& KnownPassTimes::places_of(const Scenario& scenario) {
  const Placement placement{scenario.plan, scenario.system};
  if (const auto found = places_.find(placement); found != places_.end()) return found->second;
  return places_.emplace(placement, PassPlaces{scenario}).first->second;
}

const LayerLengths& KnownPassTimes::layers_of(const Scenario& scenario, const PassPlaces& places) {
  std::vector<Layers>& of_plan = layers_[as_layers(scenario.plan)];
  const auto found = std::find_if(of_plan.begin(), of_plan.end(), [&](const Layers& layers) {
    return alike_inside_passes(layers.shapes, places.shapes);
  });
  if (found != of_plan.end()) return found->lengths;
  of_plan.push_back({places.shapes, price_layers(scenario, context_.kernels(scenario.plan.dtype),
                                                 context_.collectives(scenario.plan), places.shapes,
                                                 places.speed)});
  return of_plan.back().lengths;
}

const PassTimes& KnownPassTimes::of(const Scenario& scenario) {
  Plan key = as_priced(scenario.plan);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  if (known_.size() >= most_known) known_.clear();
  Scenario priced = scenario;
  priced.plan.zero = 0;
  const PassPlaces& places = places_of(priced);
  PassTimes times =
      pass_times(priced, context_.kernels(priced.plan.dtype), places, layers_of(priced, places));
  return known_.emplace(std::move(key), std::move(times)).first->second;
}

Seconds KnownPassTimes::bound(const Scenario& scenario) {
  return with_waiting(
      scenario, step_lower_bound(scenario, of(scenario), context_.collectives(scenario.plan)));
}

std::optional<Seconds> KnownPassTimes::routed_bound(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  if (plan.ep_overlap || plan.copies() > 1 || context_.loads(scenario)->even()) return std::nullopt;
  Plan key = as_priced(plan);
  key.gbs = plan.gbs;  // It decides how many micro-batches are sampled.
  key.microbatches = plan.microbatches;
  auto known = routed_.find(key);
  if (known == routed_.end()) {
    if (routed_.size() >= most_known) routed_.clear();
    known = routed_.emplace(std::move(key), routed_pass_times(scenario, context_)).first;
  }
  return with_waiting(scenario,
                      step_lower_bound(scenario, known->second, context_.collectives(plan)));
}

}  // namespace orrery
