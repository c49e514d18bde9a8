#include "sim/training/context.hpp"

#include "sim/kernels/kernel_error.hpp"
#include "sim/measurements/calibration.hpp"
#include "sim/plan/placement.hpp"
#include "sim/plan/rank_classes.hpp"

namespace orrery {

Layout lay_out(const System& system, const Placement& placement, const Topology& topology,
               bool unfolded) {
  return {shapes_on(system, placement, topology),
          choose_classes(system, placement, topology, unfolded)};
}

EstimateContext::EstimateContext(const System& system)
    : system_{system}, tables_{kernel_tables_of(system)} {
  collectives(Plan{});  // Nearly all estimates need it; made before threads start.
}

const CollectiveTime& EstimateContext::collectives(const Plan& plan) {
  const std::tuple key{plan.nccl_algo, plan.nccl_proto, used_of_domain(system_, plan.gpus())};
  const auto found = collectives_.find(key);
  if (found != collectives_.end()) return found->second;
  CollectiveOptions options;
  options.selection = parse_nccl_selection(plan.nccl_algo, plan.nccl_proto);
  return collectives_.emplace(key, CollectiveTime{filled_evenly(system_, plan.gpus()), options})
      .first->second;
}

const KernelModel& EstimateContext::kernels(Dtype dtype) {
  const auto found = kernels_.find(dtype);
  if (found != kernels_.end()) return found->second;
  return kernels_.try_emplace(dtype, system_.gpu, dtype, tables_ ? &*tables_ : nullptr)
      .first->second;
}

void EstimateContext::make_kernels() {
  for (const Dtype dtype : formats_for(FormatUse::products))
    if (!system_.gpu.lacks(dtype)) kernels(dtype);
}

const PriceErrors& EstimateContext::price_errors(const Scenario& scenario) {
  const Dtype dtype = scenario.plan.dtype;
  const StepClass step{scenario.model.experts.has_value(), is_narrow(dtype)};
  const auto found = price_errors_.find({dtype, step});
  if (found != price_errors_.end()) return found->second;
  PriceErrors errors = with_tables(
      read_price_errors(system_.gpu.name, dtype, step, name_in_catalog(system_.network)),
      tables_ ? &*tables_ : nullptr, dtype);
  errors.published = read_published_steps();
  return price_errors_.emplace(std::pair{dtype, step}, std::move(errors)).first->second;
}

Topology& EstimateContext::topology(int gpus) {
  const auto found = topologies_.find(gpus);
  if (found != topologies_.end()) return found->second;
  const System system = filled_evenly(system_, gpus);
  return topologies_.emplace(gpus, Topology::build(system, gpus)).first->second;
}

const Layout& EstimateContext::layout(const Placement& placement) {
  const auto found = layouts_.find(placement);
  if (found != layouts_.end()) return found->second;
  return layouts_
      .emplace(placement, lay_out(system_, placement, topology(placement.ranks()), false))
      .first->second;
}

}  // namespace orrery
