#pragma once

#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/plan/placement.hpp"
#include "sim/search/bound.hpp"
#include "sim/training/context.hpp"

namespace orrery {

/// Pass times of plans that were asked for before. Plans that differ in what makes no difference to
/// their passes (ZeRO, overlap of gradients, a schedule that keeps virtual stages where they are,
/// the batch) have them in common; and of those that differ in stages, chunks or replicas as well,
/// layers are priced once.
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
  /// Whether all groups of a kind lie alike in the system's NVLink domains (Placement::regular), or
  /// all ranks in one of them.
  bool lies_evenly(const Scenario& scenario) {
    return scenario.plan.gpus() <= scenario.system.nvlink_domain || places_of(scenario).alike;
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
