#pragma once

#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "sim/cluster/system.hpp"
#include "sim/cluster/topology.hpp"
#include "sim/collectives/collective_time.hpp"
#include "sim/kernels/kernel_model.hpp"
#include "sim/layers/routed_loads.hpp"
#include "sim/layers/step_cost.hpp"
#include "sim/measurements/kernel_tables.hpp"
#include "sim/measurements/price_errors.hpp"
#include "sim/plan/rank_classes.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {

/// How a plan's groups lie on a system, and which of its ranks are simulated.
struct Layout {
  GroupShapes shapes;
  Cast cast;
};
Layout lay_out(const System& system, const Placement& placement, const Topology& topology,
               bool unfolded);

/// What all estimates on one system have in common: read and built once, then shared. An estimate
/// with a context is the estimate without: to the last bit, but for fabrics on which many flows
/// share links, where links that were numbered in another order may end a step a tick apart.
class EstimateContext {
 public:
  explicit EstimateContext(const System& system);
  EstimateContext(const EstimateContext&) = delete;
  EstimateContext& operator=(const EstimateContext&) = delete;

  const System& system() const { return system_; }
  /// Errors: the GPU has no units for `dtype` (infeasible).
  const KernelModel& kernels(Dtype dtype);
  /// Makes those of all formats that the GPU multiplies, before workers part.
  void make_kernels();
  /// With what the plan lets NCCL choose.
  const CollectiveTime& collectives(const PlanChoices& plan);
  /// How far these prices are off in a step like this one.
  const PriceErrors& price_errors(const Scenario& scenario);
  /// Where the scenario's tokens go. Errors: as RoutedLoads.
  std::shared_ptr<const RoutedLoads> loads(const Scenario& scenario) { return loads_.of(scenario); }
  /// The wires of the first `gpus` GPUs. It numbers links as they are first used.
  Topology& topology(int gpus);
  /// Of ranks on topology(placement.ranks()), folded: plans that differ in batch, schedule, ZeRO or
  /// recomputation lie alike, and the partition is found once for all of them.
  const Layout& layout(const Placement& placement);

 private:
  System system_;
  std::optional<KernelTables> tables_;
  std::map<Dtype, KernelModel> kernels_;
  std::map<std::pair<std::string, std::string>, CollectiveTime> collectives_;
  std::map<std::tuple<std::string, Dtype, StepClass>, PriceErrors> price_errors_;  // By software.
  KnownLoads loads_;
  std::map<int, Topology> topologies_;
  std::map<Placement, Layout> layouts_;
};

/// A plan, and where its tokens go: as many different expert groups as are drawn.
struct Routed {
  Routed(const Scenario& given, EstimateContext& context);

  Scenario scenario;
  std::shared_ptr<const RoutedLoads> loads;
};

std::shared_ptr<const StepCost> price(const Routed& routed, EstimateContext& context,
                                      const Layout& layout);

}  // namespace orrery
