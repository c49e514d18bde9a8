#pragma once

#include <vector>

#include "sim/layers/pass_cost.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {

/// How long a pass is alone on the machine on GPUs of one speed, and the kernels in it.
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
/// What passes are made of, whatever layers and neighbours a stage has. It depends on the shapes of
/// groups inside passes, and of the plan on what its layers are computed with, not on pp, vpp, dp,
/// the batch, the schedule, ZeRO or the overlap of gradients.
struct LayerLengths {
  std::vector<std::pair<LayerKind, StageLengths>> kinds;
  StageLengths embedding, prediction, head;
  PassLength received;  ///< gather_received()
};
LayerLengths price_layers(const Scenario& scenario, const KernelModel& kernels,
                          const CollectiveTime& collectives, const GroupShapes& shapes,
                          double speed);
/// By virtual stage, of layers that were priced for `scenario` or one with all that they depend on.
std::vector<StageLengths> add_up_stages(const Scenario& scenario, const LayerLengths& layers);
/// By virtual stage: what the passes of price_step() add up to, without listing what is in them.
/// For plans whose weights are whole (zero < 3), routed evenly.
std::vector<StageLengths> price_passes(const Scenario& scenario, const KernelModel& kernels,
                                       const CollectiveTime& collectives, const GroupShapes& shapes,
                                       double speed);
/// What a stage's first kernels wait for, beside its transfer: without sequence parallelism the
/// scatter-gather transfer brings each rank 1/tp of the tensor, and the rest comes from its
/// neighbours (Narayanan et al., arXiv 2104.04473, section 4.1).
PassCost gather_received(const Scenario& scenario, const Pricer& pricer);
/// StepCost's figures of that name.
Bytes transfer_bytes(const Scenario& scenario);
/// What the optimizer reads and writes of a rank that updates so many parameters and holds so many.
Bytes optimizer_traffic(const Software& software, Dtype dtype, double updated, double held);
std::vector<Seconds> optimizer_times(const Scenario& scenario, const KernelModel& kernels);

}  // namespace orrery
