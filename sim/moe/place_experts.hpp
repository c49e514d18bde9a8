#pragma once

#include <vector>

#include "sim/core/error.hpp"
#include "sim/moe/expert_placement.hpp"
#include "sim/moe/trace.hpp"

namespace orrery {

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
