#pragma once

#include "sim/cli/options.hpp"
#include "sim/sweep/sweep_folder.hpp"

namespace orrery {

/// What `orrery sweep` does, each with its own options.
int run_sweep_plot(const Arguments& arguments);

/// The one folder that is named. Errors: none or several; no folder of a sweep.
SweepFolder sweep_folder_of(const ParsedOptions& parsed);

/// Where the rows lie is no place for an answer. Errors (bad_input): `output` is one of the
/// folder's own files, or would be.
void refuse_sweeps_own_files(const SweepFolder& folder, const std::string& output);

}  // namespace orrery
