#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/core/error.hpp"
#include "sim/moe/routing_trace.hpp"

namespace orrery {

/// The rank of each expert. A slot holds one expert's weights; all ranks have equally many slots.
/// An expert with several slots has copies, which share its tokens evenly.
struct ExpertPlacement {
  int ranks = 1;
  std::vector<int> expert_of;  ///< The expert of each slot, rank after rank.

  int slots_per_rank() const { return static_cast<int>(expert_of.size()) / ranks; }
  int rank_of(std::size_t slot) const { return static_cast<int>(slot) / slots_per_rank(); }
  /// The number of slots of each of `experts` experts.
  std::vector<int> copies(int experts) const;
};

/// Expert e is on rank e ranks / experts, as in training frameworks. `ranks` divides `experts`.
ExpertPlacement contiguous_placement(int experts, int ranks);

/// A placement for these loads of the experts with `redundant` further slots: the expert with the
/// most tokens for each copy gets the next copy; then copies are packed, the heaviest first, on the
/// lightest rank that has a slot left (longest processing time first, as DeepSeek's EPLB does). If
/// `groups` and `domains` > 1, whole groups of experts are packed onto domains first and copies
/// stay in their group's domain, so that limited routing visits few domains. `ranks` divides
/// experts + redundant; `domains` divides ranks, groups and redundant.
ExpertPlacement balanced_placement(std::span<const double> loads, int ranks, int redundant,
                                   int groups = 1, int domains = 1);

/// Load of each rank; the copies of an expert share its load.
std::vector<double> rank_loads(const ExpertPlacement& placement, std::span<const double> loads);

/// The largest load over the mean; 1 if there is no load.
double imbalance(std::span<const double> loads);

/// The ranks, copies and groups that experts are placed on.
struct PlacementRequest {
  int ranks = 1;      ///< Ranks of an expert-parallel group; may differ from the trace's.
  int redundant = 0;  ///< Slots for further copies.
  int groups = 1;     ///< Groups of experts that the router picks (n_group).
  int nodes = 1;      ///< NVLink domains. Groups are placed whole on a node.
};

struct PlacementGain {
  struct Layer {
    ExpertPlacement placement;
    /// Busiest rank over the mean, mean over micro-batches: contiguous and placed experts.
    double before = 1.0, after = 1.0;
    /// The busiest rank's copies over all micro-batches, which the layer's time is proportional to.
    double busiest_before = 0.0, busiest_after = 0.0;
  };
  std::vector<Layer> layers;

  double before() const;  ///< Mean over layers.
  double after() const;
  double speedup() const;  ///< Speedup of the experts' products, as all ranks wait for the busiest.
};

/// A balanced placement for each layer of `trace`, by the sum of its micro-batches, and its gain in
/// each of them. Errors (infeasible, at `at`): slots or experts that the ranks do not divide;
/// groups, redundant slots or ranks that the nodes do not divide.
PlacementGain place_experts(const RoutingTrace& trace, const PlacementRequest& request,
                            const Place& at);

}  // namespace orrery
