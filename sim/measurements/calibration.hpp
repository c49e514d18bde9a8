#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/system.hpp"
#include "sim/measurements/collective_curves.hpp"
#include "sim/measurements/kernel_tables.hpp"

namespace orrery {

/// Measurements of a user's machine by `orrery calibrate fit`: schema "orrery.calibration/1".
struct Calibration {
  /// Origin of the numbers: a record of orrery-gpu, or a log of nccl-tests.
  struct Source {
    std::string file;
    std::string machine;  ///< "NVIDIA H200, driver 580.82, CUDA 13.0, cuBLAS 13.1.0"; "": a log.
    std::string started;  ///< UTC, "2026-11-21T18:00:00Z"; "": a log.
  };

  std::string file;  ///< The path as the user gave it.
  std::string gpu;   ///< Catalog name.
  std::vector<Source> sources;
  std::optional<KernelTables> kernels;
  std::vector<MeasuredCurve> curves;
  std::optional<JsonValue> document;  ///< The document that it was read from.
};

/// Errors (bad_input): invalid content, with its place; kernels of another GPU than the file's; a
/// file without measurements.
Calibration parse_calibration(const JsonValue& json, const std::string& file);

/// Gives `system` the measurements in the file `path`. Errors (bad_input): a missing or invalid
/// file; measurements of another GPU than the system's; a group of ranks that the system's nodes
/// cannot hold. `at` is the place that named the file.
void calibrate(System& system, const std::string& path, const Place& at);
/// The same for the document `json` that was read from `path`.
void calibrate(System& system, const JsonValue& json, const std::string& path, const Place& at);

/// The kernel tables for `system`: those of its calibration, and if that lacks a number format or
/// attention, those of the project. Empty if neither exists.
std::optional<KernelTables> kernel_tables_of(const System& system);

}  // namespace orrery
