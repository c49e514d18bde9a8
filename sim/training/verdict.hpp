#pragma once

#include <string>

#include "sim/training/result.hpp"

namespace orrery {

/// An answer in a few words: whether the plan fits, the step time with its 90 % interval, how far
/// it is from the measured one, and what the critical path consists of.
///
///     Fits (79 % of memory). 18.2 s a step (90 % interval 16.8 to 20.0 s), 3.7 % above the
///     measured 17.52 s. Compute-bound: 91 % of the critical path computes, 8 % is tensor-parallel
///     communication.
///
/// Further sentences name the pipeline bubble or the wait for slower stages if it takes more than
/// 5 % of GPU time (the mean over the stages, each represented by its busiest rank), and say so if
/// more than half of the time of kernels and collectives comes from assumed efficiencies.
std::string verdict(const Result& result);

}  // namespace orrery
