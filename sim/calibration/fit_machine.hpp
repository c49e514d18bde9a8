#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calibration/host/record.hpp"
#include "sim/kernels/gemm_time.hpp"

namespace orrery {

/// A measurement that is not fitted, compared with the fit.
struct FitCheck {
  std::string what;            ///< "dgrad bf16"
  std::vector<double> errors;  ///< predicted / measured - 1
};

/// The cost of overlap in a record (docs/explanation/overlap.md).
///
/// Estimates run kernels concurrent with a collective that occupies k of S multiprocessors at 1 - u
/// k/S of their speed; u is `share`, 1 without a measurement. A product that takes r times as long
/// next to k busy ones runs at 1/r of it, so that u is the slope of 1 - 1/r over k/S through the
/// origin (least squares). Above 1 if tiles no longer come out even or clusters find no space,
/// below it if power that busy ones do not use lets the others clock higher.
struct OverlapFit {
  std::optional<double> share;  ///< Fitted to three cases or more.
  std::size_t busy_cases = 0;
  /// Products concurrent with busy multiprocessors by this fit; products concurrent with a copy,
  /// and collectives concurrent with products, by the assumption of estimates: that they lose
  /// nothing.
  std::vector<FitCheck> checks;
  /// Number of busy multiprocessors that cost a product as much as each collective.
  std::vector<std::string> findings;
};

OverlapFit fit_overlap(const std::vector<calibration::Measurement>& measurements,
                       int multiprocessors);

/// The table's times of products over those at the clock that a GPU keeps under load.
struct SustainedFit {
  double ratio = 1.0;
  std::string how;  ///< The measurements of which the ratio is the median.
};

/// True for a time from a trace of PyTorch's profiler (sim/profile/kernel_record.hpp): at a step's
/// clock, not a benchmark's as in tables.
bool is_in_a_step(const calibration::Measurement& one);

/// The ratio for products of 50 us or more in traces of steps; without these, in the last seconds
/// of products without pause; nullopt without either. `table`: the table of a number format, or
/// null. Adds to `findings` the results of products without pause, and to `notes` the exclusions.
std::optional<SustainedFit> fit_sustained(
    const std::vector<calibration::Measurement>& all,
    const std::function<const GemmTime*(const std::string& dtype)>& table,
    std::vector<std::string>& findings, std::vector<std::string>& notes);

}  // namespace orrery
