#pragma once

#include <string>
#include <vector>

#include "calibration/host/record.hpp"
#include "sim/calibration/curve.hpp"
#include "sim/calibration/fit_kernels.hpp"
#include "sim/cluster/system.hpp"
#include "sim/measurements/calibration.hpp"

namespace orrery {

/// The catalog's name for the driver's ("NVIDIA H200"), with or without its maker; "" if the
/// catalog has none.
std::string catalog_gpu(const std::string& driver_name);

/// Refuses a GPU on which a record cannot have been measured: another number of multiprocessors or
/// another generation. Errors (bad_input) name `file`.
void require_same_gpu(const calibration::Machine& machine, const Gpu& gpu, const std::string& file,
                      const std::string& remedy);

/// The collectives among `measurements`, a curve for each collective and number of ranks, on nodes
/// of `gpus_per_node`: more ranks are on as many nodes as they fill; 0: unset, all are on one node
/// of `gpus`. Errors (bad_input): ranks that do not fill whole nodes, or the one.
std::vector<Curve> curves_of(const std::vector<calibration::Measurement>& measurements,
                             int gpus_per_node, int gpus, const std::string& file,
                             const std::string& gpu, const std::string& nccl);

/// Refuses a curve whose bus bandwidth falls with size (degradation()), and two curves of one
/// group, whose mean would be neither's.
void require_healthy(const std::vector<Curve>& curves);

/// predicted / measured - 1 of each size between the first and the last, from its two neighbours,
/// log-log as CollectiveMeasurements does.
std::vector<double> curve_errors(const Curve& curve);

/// A record of orrery-gpu and where it was read.
struct NamedRecord {
  std::string file;
  calibration::Record record;
};

struct FitOptions {
  std::string gpu;             ///< Catalog name or file; "": from records and logs.
  bool own_attention = false;  ///< Attention from orrery-gpu's own kernels, too.
  int gpus_per_node = 0;       ///< 0: all ranks of a record are on its machine.
};

/// The fit of all records and logs of one kind of GPU.
struct CalibrationFit {
  Gpu gpu;
  std::vector<Calibration::Source> sources;
  std::optional<FittedKernels> kernels;
  std::vector<Curve> curves;
  std::vector<FitCheck> checks;
  std::vector<std::string> findings;  ///< Collectives concurrent with products.
  std::vector<std::string> notes;     ///< Exclusions and their reasons.
};

/// `curves`: those of nccl-tests logs. A case of several records has the median of their times.
/// Errors (bad_input): records or logs of different GPUs, or of one that the catalog does not know;
/// a sweep whose bus bandwidth falls with size; nothing that can be fitted.
CalibrationFit fit_calibration(const std::vector<NamedRecord>& records, std::vector<Curve> curves,
                               const FitOptions& options);

}  // namespace orrery
