#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/system.hpp"
#include "sim/measurements/collective_curves.hpp"
#include "sim/measurements/kernel_tables.hpp"

namespace orrery {

/// What was measured on a machine of one's own, as `orrery calibrate fit` writes it: schema
/// "orrery.calibration/1".
struct Calibration {
  /// Where its numbers are from: a record of orrery-gpu, or a log of nccl-tests.
  struct Source {
    std::string file;
    std::string machine;  ///< "NVIDIA H200, driver 580.82, CUDA 13.0, cuBLAS 13.1.0"; "": a log.
    std::string started;  ///< UTC, "2026-11-21T18:00:00Z"; "": a log.
  };

  std::string file;  ///< As it was named.
  std::string gpu;   ///< Catalog name.
  std::vector<Source> sources;
  std::optional<KernelTables> kernels;
  std::vector<MeasuredCurve> curves;
  std::optional<JsonValue> document;  ///< What it was read from.
};

/// Errors (bad_input): what no such file says, with its place; kernels of another GPU than the
/// file's; a file that holds nothing.
Calibration parse_calibration(const JsonValue& json, const std::string& file);

/// Gives `system` the measurements in the file `path`. Errors (bad_input): no such file or one that
/// cannot be meant; measurements of another GPU than the system's; a group of ranks that the
/// system's nodes cannot hold. `at`: what named the file.
void calibrate(System& system, const std::string& path, const Place& at);
/// The same, of what `path` held when `json` was made of it.
void calibrate(System& system, const JsonValue& json, const std::string& path, const Place& at);

/// The kernel tables for `system`: those of its calibration, and where that has none of a number
/// format or of attention, those that come with the project. Nothing where neither exists.
std::optional<KernelTables> kernel_tables_of(const System& system);

}  // namespace orrery
