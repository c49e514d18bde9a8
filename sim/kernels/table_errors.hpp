#pragma once

#include "sim/measurements/kernel_tables.hpp"
#include "sim/measurements/price_errors.hpp"

namespace orrery {

/// `errors` with what `tables` say of themselves (may be null): products of the GPU that they were
/// measured on are off by the 90th percentile of their leave-one-out errors over 1.645, measured
/// ones too, whose own scatter is part of that error; and so is attention, where its table timed
/// nothing but the kernel (of its worst head dimension). A product with no row near it is off by
/// that and by what was found of such, not by as much as one without any table.
PriceErrors with_tables(PriceErrors errors, const KernelTables* tables, Dtype dtype);

}  // namespace orrery
