#pragma once

#include "sim/layers/step_cost.hpp"
#include "sim/plan/placement.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {

/// Which passes are one task each; the others are drawn as a chain of kernels and collectives.
struct Contraction {
  bool quiet = true;       ///< Passes beside which no gradients or weights travel.
  bool overlapped = true;  ///< First forward and last backward passes, beside which they do.
  /// The others are a chain in one task where their collectives have one role alone, else drawn.
  bool chains = false;

  Contraction(bool all) : quiet{all}, overlapped{all} {}
  Contraction(bool of_quiet, bool of_overlapped) : quiet{of_quiet}, overlapped{of_overlapped} {}
};

/// Whether the collectives inside passes (tensor and context groups') have their links to
/// themselves all the time, since neither pipeline transfers nor overlapped gradient traffic use
/// the same kind.
bool layer_links_are_private(const Scenario& scenario, const Placement& placement);

/// What may be contracted without changing the step by more than `contraction_tolerance`: passes
/// whose collectives share their links with nobody, or with transfers so short that their meetings
/// cost less than that; and whose members have nobody else to wait for, and come at the same time
/// or meet in a collective that no kernels hide.
Contraction choose_contraction(const Scenario& scenario, const StepCost& cost,
                               const Placement& placement);
inline constexpr double contraction_tolerance = 5e-4;

}  // namespace orrery
