#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/cluster/system.hpp"
#include "sim/measurements/kernel_tables.hpp"
#include "sim/measurements/price_errors.hpp"

namespace orrery {

/// How far kernel times are off, told by the tables themselves: each row is predicted as if it had
/// not been measured, from all others of its table, and held against what was measured
/// (docs/notes/kernel-errors.md). The constants of the formula stay those of all rows.
///
/// What it holds: the scatter of a benchmark's rows and what the formula misses. What it does not:
/// another library than the table's, another clock than the benchmark's (`sustained`), a GPU that
/// the table only stands in for.

/// predicted / measured - 1 for each row of the table of `dtype`, in its order; empty without one.
/// A few milliseconds a thousand rows. Errors: the GPU has no units for `dtype` (infeasible).
std::vector<double> gemm_errors(const Gpu& gpu, const KernelTables& tables, Dtype dtype);
/// The same for the attention rows of `head_dim`, in the tables' order.
std::vector<double> attention_errors(const Gpu& gpu, const KernelTables& tables,
                                     std::int64_t head_dim);

/// The value at place `share` * n, rounded down, of the ordered `values`; 0 of none.
double middle(std::vector<double> values, double share);
/// Of signed errors; nothing of none.
std::optional<LeftOutError> summarize_errors(const std::vector<double>& errors);

/// What the tables say of themselves, without computing anything: of products in `dtype`, and of
/// attention whose head dimension is the next to `head_dim` (of two as near, the smaller). Nothing
/// where there is no table (`tables` may be null), or one that does not say.
std::optional<LeftOutError> gemm_error(const KernelTables* tables, Dtype dtype);
std::optional<LeftOutError> attention_error(const KernelTables* tables, std::int64_t head_dim);

/// `errors` with what `tables` say of themselves (may be null): products of the GPU that they were
/// measured on are off by the 90th percentile of their leave-one-out errors over 1.645, measured
/// ones too, whose own scatter is part of that error; and so is attention, where its table timed
/// nothing but the kernel (of its worst head dimension). A product with no row near it is off by
/// that and by what was found of such, not by as much as one without any table.
PriceErrors with_tables(PriceErrors errors, const KernelTables* tables, Dtype dtype);

}  // namespace orrery
