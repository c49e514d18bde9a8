#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibration/host/record.hpp"
#include "sim/calibration/fit_check.hpp"

namespace orrery {

/// What hiding costs, as a record has it (docs/OVERLAP.md).
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

}  // namespace orrery
