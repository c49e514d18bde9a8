#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibration/host/record.hpp"
#include "sim/calibration/fit_machine.hpp"
#include "sim/cluster/system.hpp"
#include "sim/measurements/kernel_tables.hpp"

namespace orrery {

/// A number that tables cannot say, and what it rests on.
struct FittedFactor {
  double value = 1.0;
  bool measured = false;
  std::string source;
};

struct FittedKernels {
  KernelTables tables;
  FittedFactor sustained, wgrad_efficiency, copy_efficiency, attention_backward;
  /// 1 and not measured where no record says otherwise.
  FittedFactor grouped_efficiency, share_lost_beside;
};

/// The kernels among `measurements`, each case once and all sound (unsound()). Adds to `checks`
/// what holds them against the fit, to `findings` what no check says, and to `notes` what was left
/// out and why.
///
/// Products: a table for each number format of which `fewest_rows` forward and dgrad passes were
/// timed, runs back to back as in a step. Where the project has a table with more rows, they
/// correct it (correct_table.hpp), else they replace it. `wgrad_efficiency` is the median of what
/// such a table says over what passes that add to fp32 took. `copy_efficiency`: bytes over time
/// between large copies and larger ones. `sustained`: what such a table, or the project's, says of
/// a product over what it took in the last seconds of many without pause. `grouped_efficiency`: the
/// median of what the table says of experts' products over what they took. `share_lost_beside`: of
/// r, what a product takes beside k of S busy multiprocessors over what it takes alone, 1 - 1/r is
/// fitted to k/S through the origin by least squares. Attention from other kernels than
/// orrery-gpu's own, which no framework runs, unless `own_attention`. What the measurements do not
/// say is as in the tables that come with the project, or assumed as without tables. Nothing where
/// no table and no factor comes of it.
///
/// Errors (bad_input): copies faster than the catalog's memory; ratios that no GPU has.
std::optional<FittedKernels> fit_kernels(const std::vector<calibration::Measurement>& measurements,
                                         const Gpu& gpu, std::int64_t l2_bytes, bool own_attention,
                                         const std::string& source, std::vector<FitCheck>& checks,
                                         std::vector<std::string>& findings,
                                         std::vector<std::string>& notes);

/// Six constants, which the prior keeps in bounds, and something left to test them.
constexpr std::size_t fewest_rows = 10;

/// Why a time should not be used: the GPU was throttled while it was taken, its clock drifted, or
/// its median is not known well; "" where nothing is wrong. `usual_slowdown`: the reference
/// product's of the whole record, as a GPU may be at its fastest only once.
std::string unsound(const calibration::Measurement& measurement, double usual_slowdown = 1.0);

}  // namespace orrery
