#pragma once

#include <cstdint>

#include "sim/core/units.hpp"
#include "sim/model/model.hpp"

namespace orrery {

/// Multiply-adds of a training step times 2: forward, and twice that backward.
Flop model_flop(const Model& model, std::int64_t sequences, std::int64_t sequence, bool causal);

}  // namespace orrery
