#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/serving/serving_error.hpp"
#include "sim/serving/serving_run.hpp"
#include "sim/training/estimate.hpp"

namespace orrery {

/// The runs of --runs, measured and predicted: each of `files`, a list with commas, holds cases in
/// the format of docs/guides/import-measurements.md, or one run that was imported with the times of
/// its log. Such a run took place on `system`, if that is given. Errors (bad_input): no measured
/// step in a file; more runs than can be distinguished.
std::vector<MeasuredRun> read_measured_runs(const std::string& files,
                                            const std::optional<std::string>& system);

/// The same of serving `setup`: cases of a served model (docs/guides/import-measurements.md), as
/// orrery import bench writes them, each predicted. Empty: there are no files. Errors (bad_input):
/// a file without a figure of serving; more than 200 runs.
ServingRunsByFigure read_serving_runs(const std::string& files, const ServingSetup& setup);

}  // namespace orrery
