#pragma once

#include <string>

#include "sim/training/training_step.hpp"

namespace orrery {

/// What is wrong with a step's graph, in words, or "". Checked: no cycle; every duration, byte
/// count and rate is finite and positive where it must be; every flow has a way; every role runs
/// each chunk's forward and backward pass of each micro-batch, the forward first; every pass
/// between two stages is fed by exactly one transfer, and what is sent forward comes back as
/// gradients, byte for byte.
std::string verify(const TrainingStep& step, const Plan& plan);

}  // namespace orrery
