#pragma once

#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/layers/stage_prices.hpp"
#include "sim/layers/step_cost.hpp"
#include "sim/plan/placement.hpp"
#include "sim/plan/scenario.hpp"
#include "sim/training/context.hpp"

namespace orrery {

/// Pass times and sizes that a lower bound of a step is made of.
struct PassTimes {
  std::vector<Seconds> forward;   ///< Each virtual stage's, alone on the machine.
  std::vector<Seconds> backward;  ///< Each virtual stage's.
  Seconds optimizer;              ///< The slowest stage's without sharding.
  Bytes transfer_bytes;           ///< The same as StepCost's.
  /// All passes of each pipeline stage, if they differ: the first two are then the least of each.
  std::vector<Seconds> work = {};
};
/// Pass times of `scenario` or one that differs in ZeRO, overlap of gradients, schedule and batch;
/// nothing is sharded. Only kernels count if groups of one kind inside passes lie differently.
PassTimes pass_times(const Scenario& scenario, const KernelModel& kernels,
                     const CollectiveTime& collectives);

/// Placement of a plan's groups, as far as pass times need it. GPUs that are faster than others of
/// their kind are `speed` times as fast.
struct PassPlaces {
  GroupShapes shapes;
  bool regular = true;  ///< Placement::regular().
  bool alike = true;    ///< All groups of each kind inside passes lie alike.
  double speed = 1.0;

  explicit PassPlaces(const Scenario& scenario);
};
/// The same of layers that are priced already, for these places.
PassTimes pass_times(const Scenario& scenario, const KernelModel& kernels, const PassPlaces& places,
                     const LayerLengths& layers);

/// A time that no simulation of the step can undercut: the longest of some paths through its task
/// graph, each task taking its least time.
///
/// Let F(v), B(v) be the passes of virtual stage v alone, x the faster of a transfer inside an
/// NVLink domain and one over the network (where stages fill whole domains: the one over the
/// network), m the micro-batches, p the stages, and stage s hold the virtual stages s, s + p, ...
///
///     fill    sum over i < s of F(i) + x       The first pass of stage s is micro-batch 0 through
///                                              chunk 0, which comes through stages 0 .. s - 1.
///     work    m (sum of F(v) + B(v), v on s)   A stage runs one pass at a time.
///     waits   x for each tensor that s sends,  Where transfers block, the sender's next pass waits
///             but for the last one             for each of them (Software::overlap_pp).
///     drain   sum over i < s of B(i) + x       The last pass of stage s is a backward pass through
///                                              chunk 0, whose gradients go through all before it.
///     close   optimizer                        Of the stage with the slowest: all begin when the
///                                              norm of all gradients is known. None where they do
///                                              not wait for it (optimizer_post_validation).
///
/// In GPipe, 1F1B and interleaved 1F1B alike fill + work + waits + drain + close is the length of a
/// chain of tasks of which each waits for the one before it, so that the step takes at least as
/// long; sharing links and what the bound leaves out (gradients, weights, other stages' hold-ups)
/// only adds to it. The bound is the largest over s. Schedules that split the backward pass end
/// with weight gradients, and with post validation a stage's step begins after its fill: of them it
/// is work and close, both parts of a pass being no shorter than the whole. The tests hold it
/// against every plan of small spaces.
Seconds step_lower_bound(const Scenario& scenario, const PassTimes& passes,
                         const CollectiveTime& collectives);

/// The same from the costs of the scenario's own routing, which must be uneven: experts cost what
/// their load takes, for each sampled micro-batch and expert group. It takes a hundred times as
/// long as pass times of even routing, and a tenth of a simulation of such a step; plans that
/// differ in ZeRO share it. The plan has one copy of the model, whose passes hide nothing of each
/// other.
PassTimes routed_pass_times(const Scenario& scenario, EstimateContext& context);

/// Which of a plan's groups lie alike in the system's NVLink domains. The later ones take longer to
/// simulate, and the last has a bound of kernels alone.
enum class Evenness {
  all_groups,     ///< All of each kind (Placement::regular), or all ranks in one domain.
  inside_passes,  ///< Those inside passes; those of gradients and weights do not.
  none
};

/// Cached pass times. Plans that differ in what makes no difference to their passes (ZeRO, overlap
/// of gradients, a schedule that keeps virtual stages where they are, the batch) share them; plans
/// that differ in stages, chunks or replicas as well share the times of layers.
class KnownPassTimes {
 public:
  /// `context`: of the system of all scenarios, whose model is one.
  explicit KnownPassTimes(EstimateContext& context) : context_{context} {}

  /// Valid until the next call.
  const PassTimes& of(const Scenario& scenario);
  /// step_lower_bound() as if routing were even.
  Seconds bound(const Scenario& scenario);
  /// The same from routed_pass_times(): nothing where routing is even, where one pass hides what
  /// another waits for, and of plans with two copies of the model.
  std::optional<Seconds> routed_bound(const Scenario& scenario);
  Evenness evenness(const Scenario& scenario) {
    if (scenario.plan.gpus() <= scenario.system.nvlink_domain) return Evenness::all_groups;
    const PassPlaces& places = places_of(scenario);
    return places.regular ? Evenness::all_groups
           : places.alike ? Evenness::inside_passes
                          : Evenness::none;
  }

 private:
  struct Hash {
    std::size_t operator()(const Plan& plan) const;
  };
  /// Layers whose collectives go over groups of the same shapes.
  struct Layers {
    GroupShapes shapes;
    LayerLengths lengths;
  };

  const PassPlaces& places_of(const Scenario& scenario);
  const LayerLengths& layers_of(const Scenario& scenario, const PassPlaces& places);

  EstimateContext& context_;
  std::unordered_map<Plan, PassTimes, Hash> known_;
  std::unordered_map<Plan, PassTimes, Hash> routed_;
  std::unordered_map<Plan, std::vector<Layers>, Hash> layers_;
  std::map<Placement, PassPlaces> places_;
};

}  // namespace orrery
