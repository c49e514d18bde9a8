#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calibration/host/record.hpp"
#include "sim/kernels/gemm_time.hpp"

namespace orrery {

/// Something that was measured and is not fitted, held against what the fit says of it.
struct FitCheck {
  std::string what;            ///< "dgrad bf16"
  std::vector<double> errors;  ///< predicted / measured - 1
};

/// What hiding costs, as a record has it (docs/explanation/overlap.md).
///
/// Estimates take kernels beside a collective that occupies k of S multiprocessors to run at
/// 1 - u k/S of their speed; u is `share`, 1 where nobody measured it. A product that takes r times
/// as long beside k busy ones runs at 1/r of it, so that u is the slope of 1 - 1/r over k/S through
/// the origin (least squares). Above 1 where tiles no longer come out even or clusters find no
/// place, below it where power that busy ones do not use lets the others clock higher.
struct OverlapFit {
  std::optional<double> share;  ///< Of three cases or more.
  std::size_t busy_cases = 0;
  /// Products beside busy multiprocessors by this; products beside a copy, and collectives beside
  /// products, by what estimates take: that they lose nothing.
  std::vector<FitCheck> checks;
  /// How many busy multiprocessors cost a product as much as each collective does.
  std::vector<std::string> findings;
};

OverlapFit fit_overlap(const std::vector<calibration::Measurement>& measurements,
                       int multiprocessors);

/// What a table says of products over what they take at the clock that a GPU keeps under load.
struct SustainedFit {
  double ratio = 1.0;
  std::string how;  ///< What the ratio is the median of.
};

/// Whether it was read off a trace of PyTorch's profiler (sim/profile/kernel_record.hpp):
/// at a step's clock, where tables are at a benchmark's.
bool is_in_a_step(const calibration::Measurement& one);

/// The clock of products of 50 us or more in traces of steps; where there are none, of the last
/// seconds of products without pause; nothing without either. `table`: of a number format; null
/// where there is none. Adds to `findings` what products without pause came to, and to `notes` what
/// was left out.
std::optional<SustainedFit> fit_sustained(
    const std::vector<calibration::Measurement>& all,
    const std::function<const GemmTime*(const std::string& dtype)>& table,
    std::vector<std::string>& findings, std::vector<std::string>& notes);

}  // namespace orrery
