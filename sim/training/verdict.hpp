#pragma once

#include <string>

#include "sim/training/result.hpp"

namespace orrery {

/// An answer in a few words: whether the plan fits, the step time with its 90 % interval, how far it
/// is from the measured one, and what most GPU time is spent on.
///
///     Fits (79 % of memory). 18.2 s a step (90 % interval 16.8 to 20.0 s), 3.7 % above the measured
///     17.52 s. Compute-bound: 86 % of GPU time computes, 8 % waits for tensor-parallel collectives.
///
/// GPU time is the mean over the stages, each represented by its busiest rank. A last sentence says
/// so if more than half of the time of kernels and collectives comes from assumed efficiencies.
std::string verdict(const Result& result);

}  // namespace orrery
