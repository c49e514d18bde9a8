#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calibration/host/record.hpp"
#include "sim/kernels/gemm_time.hpp"

namespace orrery {

/// What a table says of products over what they take at the clock that a GPU keeps under load.
struct SustainedFit {
  double ratio = 1.0;
  std::string how;  ///< What the ratio is the median of.
};

/// Whether it was read off a trace of PyTorch's profiler (sim/profile/kernel_record.hpp):
/// at a step's clock, where tables are at a benchmark's.
bool in_a_step(const calibration::Measurement& one);

/// The clock of products of 50 us or more in traces of steps; where there are none, of the last
/// seconds of products without pause; nothing without either. `table`: of a number format; null
/// where there is none. Adds to `findings` what products without pause came to, and to `notes` what
/// was left out.
std::optional<SustainedFit> fit_sustained(
    const std::vector<calibration::Measurement>& all,
    const std::function<const GemmTime*(const std::string& dtype)>& table,
    std::vector<std::string>& findings, std::vector<std::string>& notes);

}  // namespace orrery
