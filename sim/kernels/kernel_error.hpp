#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/cluster/system.hpp"
#include "sim/measurements/kernel_tables.hpp"
#include "sim/measurements/price_errors.hpp"

namespace orrery {

/// Errors of kernel times by leave-one-out: each row is predicted from all others of its table and
/// compared with its measurement (docs/notes/kernel-errors.md). The constants of the formula remain
/// those of all rows.
///
/// Included are the scatter of a benchmark's rows and the formula's errors; not included are
/// another library than the table's, another clock than the benchmark's (`sustained`), and a GPU
/// for which the table is only a proxy.

/// Predicted / measured - 1 for each row of the table of `dtype`, in its order; empty without one.
/// Takes a few milliseconds a thousand rows. Errors: the GPU has no units for `dtype` (infeasible).
std::vector<double> gemm_errors(const Gpu& gpu, const KernelTables& tables, Dtype dtype);
/// The same for the attention rows of `head_dim`, in the tables' order.
std::vector<double> attention_errors(const Gpu& gpu, const KernelTables& tables,
                                     std::int64_t head_dim);

/// The value at index `share` * n, rounded down, of the sorted `values`; 0 if there are none.
double middle(std::vector<double> values, double share);
/// Summary of signed errors; empty if there are none.
std::optional<LeftOutError> summarize_errors(const std::vector<double>& errors);

/// Errors stored in the tables, without computation: of products in `dtype`, and of attention with
/// the head dimension nearest to `head_dim` (of two as near, the smaller). Empty without a table
/// (`tables` may be null), or if it has none.
std::optional<LeftOutError> gemm_error(const KernelTables* tables, Dtype dtype);
std::optional<LeftOutError> attention_error(const KernelTables* tables, std::int64_t head_dim);

/// Replaces `errors` by those stored in `tables` (may be null): products of the GPU that they were
/// measured on have the 90th percentile of their leave-one-out errors over 1.645, measured ones
/// too, whose own scatter is part of that error; and so has attention, if its table timed only the
/// kernel (of its worst head dimension). A product far from all rows has that and the error found
/// for such, which is less than that without any table.
PriceErrors with_tables(PriceErrors errors, const KernelTables* tables, Dtype dtype);

}  // namespace orrery
