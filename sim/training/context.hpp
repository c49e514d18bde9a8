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

/// Shapes of a plan's groups on a system, and the classes of ranks to simulate.
struct Layout {
  GroupShapes shapes;
  RankClasses classes;
};
Layout lay_out(const System& system, const Placement& placement, const Topology& topology,
               bool unfolded);

/// Tables and models that all estimates on one system share, read and built once. Estimates with
/// and without a shared context are equal to the last bit, except on fabrics on which many flows
/// share links: links numbered in another order may change a step by a tick.
class EstimateContext {
 public:
  explicit EstimateContext(const System& system);
  EstimateContext(const EstimateContext&) = delete;
  EstimateContext& operator=(const EstimateContext&) = delete;

  const System& system() const { return system_; }
  /// Errors: the GPU has no units for `dtype` (infeasible).
  const KernelModel& kernels(Dtype dtype);
  /// Makes the models of all formats that the GPU multiplies, before worker threads start.
  void make_kernels();
  /// The collective model for the algorithms and protocols that the plan lets NCCL choose, on the
  /// GPUs of each NVLink domain that it fills: NICs of idle ones are of no use.
  const CollectiveTime& collectives(const Plan& plan);
  /// Errors of the cost model in a step like this one.
  const PriceErrors& price_errors(const Scenario& scenario);
  /// Routing of the scenario's tokens to experts. Errors: as RoutedLoads.
  std::shared_ptr<const RoutedLoads> loads(const Scenario& scenario) { return loads_.of(scenario); }
  /// The topology of the first `gpus` GPUs, which numbers links as they are first used.
  Topology& topology(int gpus);
  /// The folded layout on topology(placement.ranks()): plans that differ in batch, schedule, ZeRO
  /// or recomputation share it, so that the partition is computed once for all of them.
  const Layout& layout(const Placement& placement);

 private:
  System system_;
  std::optional<KernelTables> tables_;
  std::map<Dtype, KernelModel> kernels_;
  std::map<std::tuple<std::string, std::string, int>, CollectiveTime> collectives_;
  std::map<std::pair<Dtype, StepClass>, PriceErrors> price_errors_;
  KnownLoads loads_;
  std::map<int, Topology> topologies_;
  std::map<Placement, Layout> layouts_;
};

/// A plan and the routing of its tokens, with as many different expert groups as are sampled.
struct Routed {
  Routed(const Scenario& given, EstimateContext& context);

  Scenario scenario;
  std::shared_ptr<const RoutedLoads> loads;
};

std::shared_ptr<const StepCost> price(const Routed& routed, EstimateContext& context,
                                      const Layout& layout);

}  // namespace orrery
