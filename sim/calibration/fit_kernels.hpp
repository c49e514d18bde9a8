#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibration/host/record.hpp"
#include "sim/calibration/fit_machine.hpp"
#include "sim/cluster/system.hpp"
#include "sim/measurements/kernel_tables.hpp"

namespace orrery {

/// A factor outside of the tables, and its source.
struct FittedFactor {
  double value = 1.0;
  bool measured = false;
  std::string source;
};

struct FittedKernels {
  KernelTables tables;
  FittedFactor sustained, wgrad_efficiency, copy_efficiency, attention_backward;
  /// 1 and not measured by default.
  FittedFactor grouped_efficiency, overlap_loss_share;
};

/// Fits the kernels among `measurements`, each case once and all sound (unsound()). Adds to
/// `checks` the comparisons with the fit, to `findings` observations without a check, and to
/// `notes` exclusions with their reasons.
///
/// Products: a table for each number format of which `fewest_rows` forward and dgrad passes were
/// timed, runs back to back as in a step. If the project has a table with more rows, they correct
/// it (correct_table.hpp), else they replace it. `wgrad_efficiency` is the median of the table's
/// time over that of passes that add to fp32. `copy_efficiency`: bytes over time between large
/// copies and larger ones. `sustained`: the time of a product by such a table, or the project's,
/// over its time in the last seconds of many without pause. `grouped_efficiency`: the median of the
/// table's time of experts' products over the measured one. `overlap_loss_share`: r is the time of
/// a product next to k of S busy multiprocessors over its time alone; 1 - 1/r is fitted to k/S
/// through the origin by least squares. Attention from other kernels than orrery-gpu's own, which
/// no framework runs, unless `own_attention`. Factors without measurements are those of the
/// project's tables, or assumed as without tables. nullopt if neither a table nor a factor results.
///
/// Errors (bad_input): copies faster than the catalog's memory; ratios that no GPU has.
std::optional<FittedKernels> fit_kernels(const std::vector<calibration::Measurement>& measurements,
                                         const Gpu& gpu, std::int64_t l2_bytes, bool own_attention,
                                         const std::string& source, std::vector<FitCheck>& checks,
                                         std::vector<std::string>& findings,
                                         std::vector<std::string>& notes);

/// Six constants, which the prior keeps in bounds, and some rows left to test them.
constexpr std::size_t fewest_rows = 10;

/// Reason not to use a time: the GPU was throttled while it was taken, its clock drifted, or its
/// median is uncertain; "" for a sound one. `usual_slowdown`: the reference product's over the
/// whole record, as a GPU may be at its fastest only once.
std::string unsound(const calibration::Measurement& measurement, double usual_slowdown = 1.0);

}  // namespace orrery
