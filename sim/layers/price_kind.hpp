#pragma once

#include "sim/layers/op.hpp"
#include "sim/measurements/price_errors.hpp"

namespace orrery {

/// Which error the price of a kernel has. Those of a collective are TimeByPrice's.
PriceKind price_kind(const Op& kernel);

}  // namespace orrery
