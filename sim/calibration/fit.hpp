#pragma once

#include <string>
#include <vector>

#include "calibration/host/record.hpp"
#include "sim/calibration/curve.hpp"
#include "sim/calibration/fit_kernels.hpp"
#include "sim/measurements/calibration.hpp"

namespace orrery {

/// A record of orrery-gpu and where it was read.
struct NamedRecord {
  std::string file;
  calibration::Record record;
};

struct FitOptions {
  std::string gpu;             ///< Catalog name or file; "": what records and logs say.
  bool own_attention = false;  ///< Attention from orrery-gpu's own kernels, too.
  int gpus_per_node = 0;       ///< 0: all ranks of a record are on its machine.
};

/// All that records and logs of one kind of GPU come to.
struct CalibrationFit {
  Gpu gpu;
  std::vector<Calibration::Source> sources;
  std::optional<FittedKernels> kernels;
  std::vector<Curve> curves;
  std::vector<FitCheck> checks;
  std::vector<std::string> findings;  ///< Of collectives beside products.
  std::vector<std::string> notes;     ///< What was left out, and why.
};

/// `curves`: of nccl-tests logs. A case that several records hold has the median of their times.
/// Errors (bad_input): records or logs of different GPUs, or of one that the catalog does not know;
/// a sweep whose bus bandwidth falls with size; nothing that can be fitted.
CalibrationFit fit_calibration(const std::vector<NamedRecord>& records, std::vector<Curve> curves,
                               const FitOptions& options);

}  // namespace orrery
