#pragma once

#include <vector>

#include "sim/layers/pass_cost.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {

/// Isolated length of a pass on GPUs of one speed, and of the kernels in it.
struct PassLength {
  Seconds time;
  Seconds compute;

  void add(const PassCost& cost, double speed) {
    time += cost.time(speed);
    compute += cost.compute / speed;
  }
  void add(const PassLength& other) {
    time += other.time;
    compute += other.compute;
  }
};
struct StageLengths {
  PassLength forward;
  PassLength backward;
};
/// Parts of passes, independent of a stage's layers and neighbours. They depend on the shapes of
/// groups inside passes, and on the plan's parameters for computing layers, not on pp, vpp, dp, the
/// batch, the schedule, ZeRO or the overlap of gradients.
struct LayerLengths {
  std::vector<std::pair<LayerKind, StageLengths>> kinds;
  StageLengths embedding, prediction, head;
  PassLength received;  ///< gather_received()
};
LayerLengths price_layers(const Scenario& scenario, const KernelModel& kernels,
                          const CollectiveTime& collectives, const GroupShapes& shapes,
                          double speed);
/// Lengths by virtual stage; `layers` were priced for `scenario` or one with equal dependences.
std::vector<StageLengths> add_up_stages(const Scenario& scenario, const LayerLengths& layers);
/// Lengths by virtual stage of the passes of price_step(), without their segments. Only for plans
/// with whole weights (zero < 3) and even routing.
std::vector<StageLengths> price_passes(const Scenario& scenario, const KernelModel& kernels,
                                       const CollectiveTime& collectives, const GroupShapes& shapes,
                                       double speed);
/// Collectives before a stage's first kernels, in addition to its transfer: without sequence
/// parallelism the scatter-gather transfer brings each rank 1/tp of the tensor, and the rest comes
/// from its neighbours (Narayanan et al., arXiv 2104.04473, section 4.1).
PassCost gather_received(const Scenario& scenario, const Pricer& pricer);
/// Equals the member of StepCost.
Bytes transfer_bytes(const Scenario& scenario);
/// Optimizer traffic of a rank that updates `updated` parameters and holds `held`.
Bytes optimizer_traffic(const Software& software, Dtype dtype, double updated, double held);
std::vector<Seconds> optimizer_times(const Scenario& scenario, const KernelModel& kernels);

}  // namespace orrery
