#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/core/error.hpp"
#include "sim/moe/routing_trace.hpp"

namespace orrery {

/// Which experts lie on which rank. A slot is a place for one expert's weights; every rank has as
/// many. An expert with several slots has copies, which share its tokens evenly.
struct ExpertPlacement {
  int ranks = 1;
  std::vector<int> expert_of;  ///< Of each slot, rank after rank.

  int slots_per_rank() const { return static_cast<int>(expert_of.size()) / ranks; }
  int rank_of(std::size_t slot) const { return static_cast<int>(slot) / slots_per_rank(); }
  /// Slots of each of `experts` experts.
  std::vector<int> copies(int experts) const;
};

/// Expert e on rank e ranks / experts, as training frameworks place them. `ranks` divides
/// `experts`.
ExpertPlacement contiguous_placement(int experts, int ranks);

/// A placement for these loads of the experts with `redundant` further slots: the expert with the
/// most tokens for each copy gets the next copy; then copies are packed, the heaviest first, on the
/// lightest rank that has a slot left (longest processing time first, as DeepSeek's EPLB does).
/// Where `groups` and `domains` > 1, whole groups of experts are packed onto domains first and
/// copies stay in their group's domain, so that limited routing leaves few domains.
/// `ranks` divides experts + redundant; `domains` divides ranks, groups and redundant.
ExpertPlacement balanced_placement(std::span<const double> loads, int ranks, int redundant,
                                   int groups = 1, int domains = 1);

/// Load of each rank where every expert's is shared by its copies.
std::vector<double> rank_loads(const ExpertPlacement& placement, std::span<const double> loads);

/// The largest over the mean; 1 where nothing is loaded.
double imbalance(std::span<const double> loads);

/// What to place experts on.
struct PlacementRequest {
  int ranks = 1;      ///< Of an expert-parallel group; not necessarily the trace's.
  int redundant = 0;  ///< Slots for further copies.
  int groups = 1;     ///< Of experts, as the router picks them (n_group).
  int nodes = 1;      ///< NVLink domains. With groups: whole groups go to a node.
};

struct PlacementGain {
  struct Layer {
    ExpertPlacement placement;
    /// Busiest rank over the mean, mean over micro-batches: with contiguous experts, and so placed.
    double before = 1.0, after = 1.0;
    /// The busiest rank's copies, summed over micro-batches: what the layer's time follows.
    double busiest_before = 0.0, busiest_after = 0.0;
  };
  std::vector<Layer> layers;

  double before() const;  ///< Mean over layers.
  double after() const;
  double speedup() const;  ///< Of the experts' products where all wait for the busiest rank.
};

/// A balanced placement for each layer of `trace`, by all its micro-batches together, and its gain
/// in each of them. Errors (infeasible, at `at`): slots or experts that the ranks do not divide,
/// groups, redundant slots or ranks that the nodes do not.
PlacementGain place_experts(const RoutingTrace& trace, const PlacementRequest& request,
                            const Place& at);

}  // namespace orrery
