#pragma once

#include "sim/layers/step_cost.hpp"
#include "sim/plan/placement.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {

/// Selects the passes that are one task each; others are expanded into kernels and collectives.
struct Contraction {
  bool quiet = true;       ///< Passes not overlapped with gradients or weights.
  bool overlapped = true;  ///< First forward and last backward passes, which are.
  /// Other passes are one fused task if each collective has one rank class, else expanded.
  bool fused = false;

  Contraction(bool all) : quiet{all}, overlapped{all} {}
  Contraction(bool of_quiet, bool of_overlapped) : quiet{of_quiet}, overlapped{of_overlapped} {}
};

/// True if the collectives inside passes (of tensor and context groups) never share their links:
/// neither pipeline transfers nor overlapped gradient traffic use links of the same kind.
bool layer_links_are_private(const Scenario& scenario, const Placement& placement);

/// Selects passes that can be contracted without changing the step by more than
/// `contraction_tolerance`: their collectives share no links, or share them with transfers so short
/// that contention costs less than that; and their members wait for no other group, and arrive at
/// the same time or synchronize in a collective that no kernels hide.
Contraction choose_contraction(const Scenario& scenario, const StepCost& cost,
                               const Placement& placement);
inline constexpr double contraction_tolerance = 5e-4;

}  // namespace orrery
